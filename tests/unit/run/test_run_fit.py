"""A drive file that is fitted to a model makes a model of the same times."""

import tomllib

import pytest

from dbdyno.errors import UserError
from dbdyno.run.fit import Asked, fit


def fitted(source, **more):
    stages = []
    return fit(Asked((source,), 600.0, **more), stages.append), stages


def test_the_file_of_a_solid_state_drive_is_one_and_does_as_the_drive_does():
    found, stages = fitted("ssd-sata", size_bytes=4 * 1024**3)
    assert stages == ["rotation", "latency by size", "reads by depth", "model"]
    drive = tomllib.loads(found["drive_file"])["ssd"]
    assert drive["capacity_bytes"] == 4 * 1024**3
    for check in found["checks"]:
        assert check["model"] == pytest.approx(check["drive"]["value"], rel=0.1), check
    only_written = next(one for one in found["figures"] if one["field"] == "write_firmware_us")
    assert (only_written["source"], "only read" in only_written["why"]) == ("default", True)


def test_a_file_that_was_fitted_can_be_fitted(tmp_path):
    found, _ = fitted("ssd-sata", size_bytes=4 * 1024**3, write=True)
    path = tmp_path / "mine.toml"
    path.write_text(found["drive_file"], encoding="utf-8")
    again, _ = fitted(str(path), write=True)
    for one, other in zip(found["checks"], again["checks"], strict=True):
        assert other["drive"]["value"] == pytest.approx(one["drive"]["value"], rel=0.1), one


def trace_of_reads(path, count):
    """Single reads of 4 and 16 KiB that take 80 and 110 us, 1 ms apart."""
    lines = ["arrival_us,op,offset_bytes,size_bytes,response_us"]
    for index in range(count):
        size, took = ((4096, 80.0), (16384, 110.0))[index % 2]
        lines.append(f"{index * 1000},read,{index * 7919 % 50000 * 16384},{size},{took}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_trace_gives_what_it_shows_and_names_what_it_does_not(tmp_path):
    trace = tmp_path / "reads.csv"
    trace_of_reads(trace, 1000)
    found, stages = fitted(str(trace), size_bytes=4 * 1024**3)
    assert stages == ["trace", "single requests", "model"]
    drive = tomllib.loads(found["drive_file"])["ssd"]
    assert drive["capacity_bytes"] == 4 * 1024**3
    source = {figure["field"]: figure["source"] for figure in found["figures"]}
    assert (source["read_us"], source["channel_mb_s"]) == ("measured", "measured")
    assert (source["write_firmware_us"], source["flush_us"], source["buffer_bytes"]) == ("default",) * 3
    for check, took in zip(found["checks"], (80.0, 110.0), strict=True):
        assert (check["drive"]["value"], check["model"]) == (pytest.approx(took), pytest.approx(took, rel=0.05))
    trace_of_reads(trace, 400)
    with pytest.raises(UserError, match="400 requests say how long they took; 500 are needed"):
        fitted(str(trace))


def test_what_can_not_be_fitted_is_said(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("no drive", encoding="utf-8")
    with pytest.raises(UserError, match=r"notes\.txt: it begins like no format of a trace"):
        fitted(str(text))
    with pytest.raises(UserError, match="neither a block device nor a drive file"):
        fitted(str(tmp_path))
    with pytest.raises(UserError, match=r"--write is for a device, which .* is not"):
        fitted(str(text), write=True)
    with pytest.raises(UserError, match="--format elf is no format of a trace; there are blktrace, "):
        fitted(str(text), format="elf")
    with pytest.raises(UserError, match="/dev/nosuch is not there; lsblk"):
        fitted("/dev/nosuch")
    for name, kind in (("ideal", "ideal"), ("ebs-gp2", "cloud")):
        with pytest.raises(UserError, match=rf"{name} is neither a hard disk nor .* of kind \[{kind}\] by hand"):
            fitted(name)
    with pytest.raises(UserError, match="256 MiB are needed"):
        fitted("hdd-7200", size_bytes=1024**2)
