"""What ``dbdyno doctor`` prints: as it reads, within the terminal's columns, and with nothing lost."""

from dataclasses import replace

import pytest

from dbdyno.analysis.quick import HostMeasurement
from dbdyno.cli.doctor import capability_lines, host_lines
from dbdyno.report.host_advice import advice, fitness
from dbdyno.stack import capabilities
from dbdyno.stack.capabilities import Capability

ABLE = [
    Capability("root", ok=True, detail="this process is root and may mount (CAP_SYS_ADMIN)"),
    Capability("FUSE", ok=True, detail="/dev/fuse and fusermount3"),
    Capability("memory cgroup", ok=True, detail="version 2 at /sys/fs/cgroup"),
    Capability("ublk", ok=False, detail="no ublk", remedy="nothing to do: it is not used", needed=False, used=False),
    Capability("smartctl", ok=False, detail="not installed", remedy="apt-get install smartmontools", needed=False),
]
LACKING = [
    Capability(
        "root", ok=False, detail="this is an ordinary user", remedy='run it with sudo, or study device = "here"'
    ),
    replace(ABLE[1], ok=False, detail="no /dev/fuse", remedy="modprobe fuse, or give the container /dev/fuse"),
    *ABLE[2:],
]
QUIET = HostMeasurement(
    cores=8,
    guest=True,
    wake_up_us_p50=9.81,
    wake_up_us_p99=31.2,
    timer_late_us_p50=55.4,
    timer_late_us_p99=71.3,
    clock_read_ns=24.7,
    memory_bytes_per_second=1.1e10,
    stolen_share=0.0,
    busy_share=0.02,
    clock_source="tsc",
    clock_sources=("tsc", "hpet"),
    governor="performance",
    memory_bytes=2**35,
    swap_bytes=0,
    disk_us_p50=15.2,
    disk_us_p99=41.0,
    disk_iops=204_000,
    can_be_awake=True,
)
VIRTUAL = replace(
    QUIET,
    cores=2,
    wake_up_us_p50=56.2,
    wake_up_us_p99=723.0,
    timer_late_us_p99=299.0,
    disk_us_p50=62.0,
    disk_iops=39_640,
)
BUSY = replace(VIRTUAL, busy_share=0.97, stolen_share=0.04, memory_bytes_per_second=1.1e9, swap_bytes=2**30)
BAD = replace(BUSY, cores=1, stolen_share=0.3, clock_source="hpet", clock_read_ns=900.0, disk_us_p50=400.0,
              governor="powersave", memory_bytes=2**30, can_be_awake=False,
              why_not_awake="pollers would not yield to other sessions (kernel.sched_autogroup_enabled)",
              awake_remedy="sudo sysctl kernel.sched_autogroup_enabled=0")  # fmt: skip
NOTHING = HostMeasurement(cores=4, guest=False, no_disk="root: this is an ordinary user; run it with sudo")
HOSTS = {"quiet": QUIET, "virtual": VIRTUAL, "busy": BUSY, "bad": BAD, "nothing known": NOTHING}


@pytest.mark.parametrize("name", HOSTS)
def test_as_it_reads_in_80_columns(name, snapshot, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "\n".join(host_lines(HOSTS[name])) == snapshot


@pytest.mark.parametrize("found", [ABLE, LACKING], ids=["able", "lacking"])
def test_what_this_host_can_do_as_it_reads(found, snapshot, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "\n".join(capability_lines(found)) == snapshot


@pytest.mark.parametrize("columns", [60, 80, 100, 300])
@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_sentences_fit_the_terminal_and_are_whole(host, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = [line for text in host_lines(host) for line in text.splitlines()]
    commands = {f"       {one.command}" for one in advice(host)}
    assert all(len(line) <= min(columns, 100) for line in lines if line not in commands)
    assert commands <= set(lines)
    text = " ".join(" ".join(lines).split())
    assert all(f"{one.what}: {one.why}" in text for one in advice(host))
    assert all(one.study in text and one.why in text for one in fitness(host))


@pytest.mark.parametrize("there", [True, False])
def test_ublk_is_said_in_a_sentence_and_never_a_lack(there, tmp_path, monkeypatch):
    place = tmp_path / "ublk-control"
    if there:
        place.touch()
    monkeypatch.setattr(capabilities, "UBLK", str(place))
    found = capabilities.ublk()
    assert found.ok is there
    assert str(place) in found.detail
    assert "FUSE and a loop device" in found.said
    assert "ublk" not in capability_lines([found])[-1]
