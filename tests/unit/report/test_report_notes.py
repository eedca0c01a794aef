"""What the notes say: of images, of processors that were kept awake, of syncs, extents and room."""

import json
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.report.notes import awake_lines, filesystem_lines
from tests.unit.report.conftest import build
from tests.unit.report.rendered import as_json, as_page, as_text

SAID = {
    (): "",
    ("a",): "Data was prepared in 1 image for all treatments.",
    ("a", "b"): "Data was prepared in 2 images.",
}


@pytest.mark.parametrize("images", SAID, ids=len)
def test_they_are_counted_in_every_form(run, images):
    trials = [replace(one, image=images[place % len(images)] if images else "") for place, one in enumerate(run.trials)]
    made = replace(run, trials=trials, study_text="version = 1")
    found = made, analyse(made)
    assert json.loads(as_json(*found)).get("images", 0) == len(images)
    for shown in (as_text(*found), as_page(*found)):
        assert SAID[images] in " ".join(shown.replace("\u00a0", " ").split())
        assert ("Data was prepared" in " ".join(shown.split())) == bool(images)


# What is said of processors that were kept awake.


def run_awake(given):
    """A run whose treatments' trials hold this of what kept processors awake."""
    run = build(blocks=2, void_block=0, rates=dict.fromkeys(given, 400.0), pairs=[])
    return replace(run, trials=[replace(trial, awake=given[trial.treatment]) for trial in run.trials])


def test_nothing_is_said_where_they_halt_as_usual():
    assert awake_lines(run_awake({"t1": {}, "t2": {}})) == []


def test_what_pollers_used_is_said_as_otherwise_idle_time():
    by = {"by": "by pollers", "cpus": "0-1"}
    (line,) = awake_lines(run_awake({"t1": by | {"cpu_seconds": 10.0}, "t2": by | {"cpu_seconds": 15.0}}))
    assert line.startswith("Processors were kept awake by pollers, which used 12.50 s of otherwise idle time a trial")


def test_the_kernel_takes_no_time_and_one_treatment_of_two_is_named():
    (line,) = awake_lines(run_awake({"t1": {"by": "by the kernel", "cpus": "0-1", "cpu_seconds": 0.0}, "t2": {}}))
    assert line == "Processors were kept awake by the kernel for hdd-7200 / mq-deadline."


# What is said of syncs, extents and room.


def with_filesystems(given):
    """A run whose treatments observed these: id -> (device, queue, filesystem, space)."""
    run = build(blocks=2, void_block=0, rates=dict.fromkeys(given, 400.0), pairs=[])
    trials = []
    for trial in run.trials:
        device, queue, filesystem, space = given[trial.treatment]
        observed = {"device": device, "queue": queue, "filesystem": filesystem}
        trials.append(replace(trial, observed=observed, space=space))
    return replace(run, trials=trials)


ROOM = {"size_bytes": 1000, "free_bytes": 500, "extents_per_GiB": 40.0}
SYNCED = ({"kind": "emulated"}, {"write_cache": "write back"}, {"flushes_on_fsync": True, "barriers": True}, ROOM)


def test_nothing_is_said_of_what_is_as_it_should_be_but_the_extents():
    [line] = filesystem_lines(with_filesystems({"t1": SYNCED, "t2": SYNCED}))
    assert line.endswith("mean over trials: hdd-7200 / mq-deadline: 40.00; hdd-7200 / none: 40.00.")


def test_each_reason_for_a_sync_that_does_not_arrive_is_told_with_its_treatments():
    no = {"flushes_on_fsync": False}
    lines = filesystem_lines(
        with_filesystems(
            {
                "t1": ({"kind": "memory"}, {}, {**no, "barriers": False}, {}),
                "t2": ({"kind": "emulated"}, {"write_cache": "write through"}, {**no, "barriers": True}, {}),
                "t3": ({"kind": "emulated"}, {"write_cache": "write back"}, {**no, "barriers": False}, {}),
                "t4": ({"kind": "emulated"}, {"write_cache": "write back"}, {**no, "barriers": True}, {}),
            }
        )
    )
    [line] = lines
    assert line == (
        "A sync did not make the device empty its cache with hdd-7200 / mq-deadline (there is no device); "
        "hdd-7200 / none (to the kernel it has none that a power cut takes); "
        "ssd-sata / mq-deadline (barriers are off); ssd-sata / none (for no known reason). "
        "What that gains, a power cut may take."
    )


def test_too_little_room_is_told():
    full = (*SYNCED[:3], {"size_bytes": 1000, "free_bytes": 40, "extents_per_GiB": None})
    lines = filesystem_lines(with_filesystems({"t1": SYNCED, "t2": full}))
    assert lines[-1] == "The filesystem was nearly full after the load; free were: hdd-7200 / none 4.0 %."


def test_an_old_or_malformed_folder_says_nothing():
    odd = ({"kind": 1}, "x", ["flushes_on_fsync"], {"size_bytes": "many", "free_bytes": None, "extents_per_GiB": -1})
    assert filesystem_lines(with_filesystems({"t1": odd, "t2": ({}, {}, {}, {})})) == []
