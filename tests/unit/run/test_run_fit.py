"""A drive file that is fitted to a model makes a model of the same times."""

import tomllib

import pytest

from dbdyno.errors import UserError
from dbdyno.run.fit import FitRequest, fit


def fitted(source, **more):
    stages = []
    return fit(FitRequest(source, 600.0, **more), stages.append), stages


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


def test_what_can_not_be_fitted_is_said(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("no drive", encoding="utf-8")
    for place in (text, tmp_path):
        with pytest.raises(UserError, match="neither a block device nor a drive file"):
            fitted(str(place))
    with pytest.raises(UserError, match="/dev/nosuch is not there; lsblk"):
        fitted("/dev/nosuch")
    for name, kind in (("ideal", "ideal"), ("ebs-gp2", "cloud")):
        with pytest.raises(UserError, match=rf"{name} is neither a hard disk nor .* of kind \[{kind}\] by hand"):
            fitted(name)
    with pytest.raises(UserError, match="256 MiB are needed"):
        fitted("hdd-7200", size_bytes=1024**2)
