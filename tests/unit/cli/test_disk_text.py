"""What ``disk stats`` says of the way of answers, and ``disk list`` of disks."""

from pathlib import Path

from dbdyno.cli.disk import _ways_text, listed
from dbdyno.stack.attached import _shown


def test_each_size_that_came_is_named():
    ways = {"read": {"4096": 12_940, "more": 88_000}, "write": {"16384": 9_100}, "without_data": 4_000}
    assert _ways_text(ways, 1.234, 0.25) == (
        "way back of answers, us: read to 4 KiB 12.9, read larger 88.0, write to 16 KiB 9.1, without data 4.0; "
        "busy waiting: 1.23 s, at most 25% of a processor now"
    )


def test_nothing_is_said_of_what_was_not_seen():
    text = _ways_text({"read": {}, "write": {}, "without_data": None}, 0.0, 0.05)
    assert text.startswith("way back of answers, us: none seen; ")


def test_disks_of_runs_and_attached_ones_are_listed_alike_with_what_uses_them():
    now = {"model": "ssd-sata", "power": "on", "mode": "model", "faults": []}
    attached = _shown({"name": "a", "model": "x", "size_bytes": 2**30, "since": "now", "pid": 7}, None, now, None)
    of_run = {"model": "ssd-sata", "size_bytes": 2**30, "pid": 8, "used_by": "run a.toml into runs/a"}
    raised = _shown(of_run, Path("/dev/loop3"), now, None)
    assert attached.keys() == raised.keys()
    assert (attached["used_by"], raised["used_by"]) == (None, "run a.toml into runs/a")
    heading, first, second, line = listed([attached, raised]).splitlines()
    assert (heading.split()[0], first.split()[0], second.split()[0]) == ("name", "a", "-")
    assert line == "/dev/loop3 is used by dbdyno run a.toml into runs/a"
