"""The probe of the block device beside iostat itself (sysstat), over the same seconds of the same device."""

import math
import os
import pty
import subprocess
from contextlib import contextmanager

from dbdyno.probe.iostat import BlockDeviceSource
from dbdyno.probe.sampler import Sampler
from dbdyno.system.interrupt import now_ns

# Column to what its mean over several intervals is weighted by, beside their length.
COLUMNS = {
    "r/s": (), "w/s": (), "d/s": (), "f/s": (),
    "rkB/s": (), "wkB/s": (), "dkB/s": (),
    "rrqm/s": (), "wrqm/s": (), "drqm/s": (),
    "%rrqm": ("r/s", "rrqm/s"), "%wrqm": ("w/s", "wrqm/s"), "%drqm": ("d/s", "drqm/s"),
    "r_await": ("r/s",), "w_await": ("w/s",), "d_await": ("d/s",), "f_await": ("f/s",),
    "rareq-sz": ("r/s",), "wareq-sz": ("w/s",), "dareq-sz": ("d/s",),
    "aqu-sz": (), "%util": (),
}  # fmt: skip
NEAR, ROUNDING = 0.01, 0.011  # 1 %, or what iostat's two decimals hide
JOBS = {
    "random": ["--rw=randrw", "--rwmixread=60", "--bsrange=4k-32k", "--iodepth=4", "--rate_iops=400", "--fsync=20"],
    "merged": ["--rw=write", "--bs=4k", "--iodepth=32", "--iodepth_batch=16", "--rate_iops=800"],
    "trimmed": ["--rw=randtrim", "--bs=256k", "--iodepth=1", "--rate_iops=25"],
}


@contextmanager
def mixed_load(device, seconds):
    """Reads, writes, flushes, discards and requests that merge, at steady rates; what is on the device is lost."""
    common = [f"--filename={device}", "--direct=1", "--ioengine=libaio", "--time_based", f"--runtime={seconds}"]
    jobs = [word for name, flags in JOBS.items() for word in (f"--name={name}", *common, *flags)]
    with subprocess.Popen(["fio", "--output=/dev/null", *jobs]) as load:
        try:
            yield
        finally:
            load.terminate()


def rows_of_iostat(device, seconds):
    """One row a second: (begin, end, columns) in ns on the monotonic clock. iostat writes to a terminal at once."""
    leader, follower = pty.openpty()
    command = ["iostat", "-x", "-d", device, "1", str(seconds + 1)]
    environment = {**os.environ, "S_COLORS": "never", "LC_ALL": "C", "COLUMNS": "400"}
    rows, names, before = [], [], None
    with subprocess.Popen(command, stdout=follower, env=environment) as told:
        os.close(follower)
        with os.fdopen(leader, encoding="utf-8") as lines:
            for words in words_until_the_end(lines):
                if words[:1] == ["Device"]:
                    names = words[1:]
                elif words[:1] == [device]:
                    now = now_ns()
                    if before:  # the first row is since boot
                        rows.append((before, now, dict(zip(names, map(float, words[1:]), strict=True))))
                    before = now
        told.wait()
    return rows


def words_until_the_end(lines):
    """The words of each line, until the terminal's other end is closed."""
    while True:
        try:
            line = lines.readline()
        except OSError:
            return
        if not line:
            return
        yield line.split()


def rows_of_the_probe(series):
    """The same of a series."""
    begins = [series.began[0], *series.t_ns]
    rows = []
    for place, (begin, end) in enumerate(zip(begins, series.t_ns, strict=False)):
        columns = {name: values[place] for name, values in series.columns.items()}
        columns |= {f"{kind}kB/s": columns[f"{kind}MB/s"] * 1e6 / 1024 for kind in "rwd"}
        rows.append((begin, end, columns))
    return rows


def means(rows, begin, end):
    """Each column over a span of time; a row that is only partly in it counts by that part."""
    spans = [(max(0, min(end, last) - max(begin, first)), columns) for first, last, columns in rows]
    found = {}
    for name, by in COLUMNS.items():
        weights = [span * (math.fsum(columns[one] for one in by) if by else 1.0) for span, columns in spans]
        total = math.fsum(weights)
        values = math.fsum(weight * columns[name] for weight, (_, columns) in zip(weights, spans, strict=True))
        found[name] = values / total if total else 0.0
    return found


def compared(device, seconds, near=NEAR):
    """Column to (iostat's, ours, whether they are near), over the seconds that iostat told of."""
    sampler = Sampler([BlockDeviceSource(device)])
    sampler.start()
    theirs = rows_of_iostat(device, seconds)
    series = sampler.stop()["block_device"]
    begin, end = theirs[0][0], theirs[-1][1]
    told, ours = means(theirs, begin, end), means(rows_of_the_probe(series), begin, end)
    return {
        name: (told[name], ours[name], math.isclose(told[name], ours[name], rel_tol=near, abs_tol=ROUNDING))
        for name in COLUMNS
    }
