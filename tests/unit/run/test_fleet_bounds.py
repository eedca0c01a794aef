"""How much and how long a host is listened to: by what the plan has it do."""

from threading import Event

from dbdyno.run import host_program
from dbdyno.run.fleet import coordinate
from dbdyno.run.fleet.coordinate import block_bytes_max, idle_seconds_max, states_bytes_max
from dbdyno.store.run_folder import read_run
from tests.fleets import Fleet
from tests.unit.run.test_fleet import ON_THREE, whole
from tests.unit.run.test_fleet_lies import slowly, states  # noqa: F401  (a fixture)

HOUR_SECONDS = 3600.0


def test_a_short_study_waits_hours_at_most_and_takes_gigabytes_at_most(plan):
    made = plan(ON_THREE, blocks=6)
    assert 24 * HOUR_SECONDS < idle_seconds_max(made, {}) < 26 * HOUR_SECONDS  # its load may take a day
    assert idle_seconds_max(made, {"t1": 9.0}) == idle_seconds_max(made, {})
    assert idle_seconds_max(made, {"t1": 9.0, "t2": 5.0}) < 2 * HOUR_SECONDS
    assert idle_seconds_max(made, {"t1": 1e300, "t2": 5.0}) == idle_seconds_max(made, {})  # as a host may say
    assert 256 * 1024**2 < block_bytes_max(made) < 16 * 1024**3
    assert states_bytes_max(made) == 0


def test_a_host_that_says_nothing_is_left_out(plan, into, states, monkeypatch):  # noqa: F811  (the fixture)
    monkeypatch.setattr(coordinate, "SILENT_MAX_SECONDS", 2.0)
    monkeypatch.setattr(host_program, "BEAT_SECONDS", 0.1)
    fleet = Fleet(states, script_of=slowly)
    silent = fleet.hosts._sides["db2"]
    over = Event()
    silent.read = lambda _, seconds: ([], -9 if over.wait(min(seconds, 0.1)) else None)
    try:
        assert fleet.run(plan(ON_THREE, blocks=6), into).how == "done"
    finally:
        over.set()
    assert whole(into)["db2"] == 0
    assert any("db2 no longer takes part: it has sent nothing for" in one for one in read_run(into).notes)


def test_a_host_that_only_says_that_it_goes_on_is_left_out_in_the_end(plan, into, states, monkeypatch):  # noqa: F811
    monkeypatch.setattr(coordinate, "idle_seconds_max", lambda *_: 2.0)
    monkeypatch.setattr(host_program, "BEAT_SECONDS", 0.1)
    fleet = Fleet(states, script_of=slowly)
    lines_of = fleet.hosts._sides["db2"].lines_of
    fleet.hosts._sides["db2"].lines_of = lambda message: lines_of(message) if {"beats", "facts"} & {*message} else []
    assert fleet.run(plan(ON_THREE, blocks=6), into).how == "done"
    assert whole(into)["db2"] == 0
    assert any("db2 no longer takes part: it has made no progress for" in one for one in read_run(into).notes)
