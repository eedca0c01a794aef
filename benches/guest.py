"""The same study on this host and in a virtual machine: whether the drives behave alike, and what the machine distorts.

    sudo .venv/bin/python -m benches.guest [--seconds 20] [--blocks 3] [--kernel debian-6.1] [--state DIR] [--json FILE]

On the host the drive is a loop device over the emulated disk, in the machine QEMU has its file. Device times are the
drive's own. Those of random reads don't depend on when a read comes. That of a FLUSH does, as the drive writes out its
cache meanwhile, and what a thread waits for a write and its FLUSH (O_DSYNC, as fdatasync) goes through the kernel and
the CPU: both are shown, and judged only with KVM. ``--state`` names a state folder that has the kernel; else it is
fetched.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benches.figures import within, write
from dbdyno.model.wording import count

DRIVES = ("hdd-7200", "ssd-sata")
STUDY = """
version = 1
[study]
title = "{name}"
[stack]
{kernel}
device = {drives}
size = "512MiB"
scheduler = "none"
filesystem = "ext4"
[workload]
kind = "fio"
job = ["reads.fio", "syncs.fio"]
[design]
interference = "note"
blocks = {blocks}
"""
JOB = """
[{name}]
ioengine=psync
direct=1
size=128M
bs=4k
time_based=1
runtime={seconds}
{options}
"""
JOBS = {"reads": "rw=randread", "syncs": "rw=randwrite\nsync=dsync"}
KIND = {"reads": "read", "syncs": "flush"}  # of requests whose time at the drive counts, by job
DBDYNO = [sys.executable, "-m", "dbdyno.cli.main"]
DEVICE_RATIO, DRIVES_RATIO = (0.95, 1.05), (0.9, 1.1)


def run_study(name, kernel, blocks, folder):
    """The trials of the study, on the host where no kernel is given."""
    study, into = folder / f"{name}.toml", folder / name
    line = f'kernel = "{kernel}"' if kernel else ""
    study.write_text(STUDY.format(name=name, kernel=line, drives=json.dumps(DRIVES), blocks=blocks), encoding="utf-8")
    subprocess.run([*DBDYNO, "run", str(study), "--into", str(into)], check=True, stdout=subprocess.DEVNULL)
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(into.glob("trials/*/trial.json"))]


def milliseconds(trials):
    """Drive to what takes how long in the mean of all blocks: its own time by kind of request, and ``fdatasync``."""
    found = {drive: {} for drive in DRIVES}
    for trial in trials:
        times = found[trial["observed"]["device"]["model"]]
        (job,) = trial["load"]["jobs"]
        kind = KIND[job]
        times.setdefault(kind, []).append(trial["device"]["service_ns"][kind]["mean"] / 1e6)
        if job == "syncs":
            times.setdefault("fdatasync", []).append(trial["metrics"]["latency_ms_mean"])
    return {drive: {what: statistics.fmean(each) for what, each in times.items()} for drive, times in found.items()}


def figures(host, guest, *, has_kvm):
    """Guest over host, of each; what depends on the speed of the CPU is judged where that is real."""
    found = []
    for drive in DRIVES:
        ratios = {what: guest[drive][what] / on_host for what, on_host in host[drive].items()}
        found += [
            _figure(f"device time of a read of {drive}, guest/host", ratios["read"], DEVICE_RATIO, is_judged=True),
            _figure(f"device time of a FLUSH of {drive}, guest/host", ratios["flush"], DEVICE_RATIO, is_judged=has_kvm),
            within(f"time of fdatasync on {drive}, guest/host", ratios["fdatasync"], None, None, None),
        ]
    of_guest, of_host = ([times[drive]["fdatasync"] for drive in DRIVES] for times in (guest, host))
    ratio = (of_guest[0] / of_guest[1]) / (of_host[0] / of_host[1])
    name = f"time of fdatasync, {':'.join(DRIVES)}, guest/host"
    return [*found, _figure(name, ratio, DRIVES_RATIO, is_judged=has_kvm)]


def _figure(name, ratio, limits, *, is_judged):
    low, high = limits if is_judged else (None, None)
    return within(name, ratio, low, high, low <= ratio <= high if is_judged else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=20, help="length of a trial")
    parser.add_argument("--blocks", type=int, default=3, help="of all trials, on the host and in a guest")
    parser.add_argument("--kernel", default="debian-6.1", help="that the guest boots")
    parser.add_argument("--state", type=Path, help="a state folder that has the kernel")
    parser.add_argument("--strict", action="store_true", help="exit 1 where a limit is not met")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ddb", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)  # fio runs as another user
        os.environ["DBDYNO_STATE_DIR"] = str(options.state.absolute() if options.state else folder / "s")
        if not options.state:
            subprocess.run([*DBDYNO, "kernels", "add", options.kernel], check=True, stdout=subprocess.DEVNULL)
        for job, lines in JOBS.items():
            text = JOB.format(name=job, seconds=options.seconds, options=lines)
            (folder / f"{job}.fio").write_text(text, encoding="utf-8")
        on_host = run_study("host", "", options.blocks, folder)
        in_guest = run_study("guest", options.kernel, options.blocks, folder)
    accelerator = in_guest[0]["observed"]["guest"]["accelerator"]
    host, guest = milliseconds(on_host), milliseconds(in_guest)
    found = figures(host, guest, has_kvm=accelerator == "kvm")
    print(f"{options.kernel}, {'KVM' if accelerator == 'kvm' else 'emulated CPU'}; {count(options.blocks, 'block')}")
    print("| drive | what | host, ms | guest, ms | guest/host |")
    print("|---|---|---|---|---|")
    for drive in DRIVES:
        for what, on in host[drive].items():
            there = guest[drive][what]
            print(f"| {drive} | {what} | {on:.3f} | {there:.3f} | {there / on:.3f} |")
    write(options.json, found, {"accelerator": accelerator, "host_ms": host, "guest_ms": guest})
    if missed := [figure for figure in found if figure.met is False]:
        for figure in missed:
            print(f"not met: {figure.name}: {figure.value:.3f}, limit {figure.limit}")
        sys.exit(int(options.strict))


if __name__ == "__main__":
    main()
