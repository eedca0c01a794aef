"""A host under test that lies: its block is void, it is named, and the run goes on without it and can be resumed."""

import hashlib
import io
import json
import shutil
import tarfile
import time
from dataclasses import replace
from itertools import repeat
from threading import Event

import pytest

from dbdyno.errors import HostError
from dbdyno.hosts.contract import LieError
from dbdyno.plan.plan import make_plan
from dbdyno.run import host_program
from dbdyno.run.fleet import coordinate, message
from dbdyno.run.fleet.coordinate import block_bytes_max, idle_seconds_max, states_bytes_max
from dbdyno.run.fleet.fold import ARRIVED, fold, fold_leftovers
from dbdyno.run.fleet.message import parse
from dbdyno.servers.contract import Address, Tls
from dbdyno.store.events import (
    Dropped,
    Failed,
    Finished,
    Joined,
    LogSize,
    Lost,
    Note,
    Started,
    append_event,
    line_of,
    read_events,
)
from dbdyno.store.run_folder import RunFolder, read_run
from dbdyno.store.trials import lost_trials
from dbdyno.study.load import load_study
from dbdyno.study.rules import ABLE
from dbdyno.workload.kinds import workload_of
from dbdyno.workload.load import limit_seconds
from dbdyno.workload.together import asked_of
from tests.fleets import HOSTS, Fleet, ForkedSide
from tests.scripted import Script
from tests.unit.run.test_fleet import ON_THREE, whole

ESCAPES = "\x1b[2J\x1b]0;own\x07\u202e"
SHA256 = "0" * 64
PACKED = {"path": "/p", "sha256": SHA256, "states_bytes": 0, "states": None}
CLIENT = {"argv": ["dbdyno-load", "oltp", "--rate=5.0", "--share=1/2"], "environment": {"MYSQL_PWD": "p"}, "files": {}}


def json_line(**more):
    return json.dumps(more).encode()


def load(**more):
    return json_line(load={"each": {"c1": {**CLIENT, **more}}, "limit_seconds": 5.0}, answer="/a")


@pytest.mark.parametrize(
    "line",
    [
        json_line(say="a sentence"),
        json_line(asks=3),
        json_line(trial_done=0.5),
        json_line(ended="done"),
        json_line(kernel="6.1.0-28-amd64"),
        json_line(error="no room"),
        json_line(joined={"cores": 2}, versions={"kernel": "6"}, go="/go"),
        json_line(block=1, seconds=1.5, packed=PACKED),
        json_line(trial={"block": 1, "attempt": 1, "position": 2, "treatment": "t1"}, note=""),
        load(),
    ],
)
def test_what_a_member_says_is_understood(line):
    assert line.startswith(b'{"' + next(iter(vars(parse("db2", line, message.OF_BLOCKS)))).encode())


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"5",
        b"null",
        b"[1]",
        b'"x"',
        b"{",
        b"{}",
        b"\xff\xfe{",
        b"[" * 200_000,
        b'{"a":' * 50_000,
        b"1" * 10_000,
        json_line(unheard=1),
        json_line(kernel=6.1),
        json_line(booted=""),
        json_line(say={"a": 1}),
        json_line(say=5),
        json_line(say="x", asks=1),
        json_line(gone="x"),
        json_line(clients_lost="x"),
        json_line(error=None),
        json_line(asks="1"),
        json_line(asks=1.5),
        json_line(asks=True),
        json_line(asks=10**30),
        json_line(joined=5, go="/go"),
        json_line(joined=5, versions=7, go=9),
        json_line(joined={}, versions={}, go="/go"),
        json_line(joined={"a": 1}, versions={"a": 1}, go="/g"),
        b'{"joined": {"cores": NaN}, "versions": {}, "go": "/go"}',
        b'{"joined": {"x": 1e999}, "versions": {}, "go": "/go"}',
        b'{"joined": {"x": ' + b"[" * 50 + b"]" * 50 + b'}, "versions": {}, "go": "/go"}',
        b'{"trial_done": NaN}',
        b'{"trial_done": -Infinity}',
        json_line(trial_done=-1.0),
        json_line(trial_done="x"),
        json_line(trial={"x": 1}, note=""),
        json_line(trial={"block": 1, "attempt": 1, "treatment": "t1"}, note=""),
        json_line(trial=[], note=""),
        json_line(block=1, seconds=-1.0, packed=PACKED),
        json_line(block=1, seconds=1.0, packed={"x": 1}),
        json_line(block=1, seconds=1.0),
        json_line(block=1, seconds=1.0, packed={**PACKED, "sha256": "../x"}),
        json_line(block=1, seconds=1.0, packed={**PACKED, "states_bytes": -1}),
        json_line(block=1, seconds=1.0, packed={**PACKED, "states": {"path": 5}}),
        json_line(block=1, seconds=1.0, packed={**PACKED, "states": {}}),
        json_line(load={"x": 1}, answer="/tmp/x"),
        json_line(load={"each": {}, "limit_seconds": 1.0}, answer="/a"),
        json_line(load={"each": {"c1": CLIENT}, "limit_seconds": -1.0}, answer="/a"),
        load(argv=["sh", "-c", "id"]),
        load(argv=[]),
        load(argv=["dbdyno-load", "oltp", "--json=/etc/passwd"]),
        load(argv=["dbdyno-load", "oltp", "--hlog", "x"]),
        load(argv=["dbdyno-load", "oltp", "--ledger=x"]),
        load(argv=["dbdyno-load", "oltp", "--host=/tmp/s"]),
        load(argv=["dbdyno-load", "/x"]),
        load(environment={"LD_PRELOAD": "/x"}),
        load(environment={"PATH": "/tmp"}),
        load(files={"init-file": "x"}),
    ],
)
def test_what_no_member_says_is_refused_with_the_host_s_name(line):
    with pytest.raises(LieError, match=r"^db2: ") as refused:
        parse("db2", line, message.OF_BLOCKS)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 800


STUDY = """version = 1
[study]
title = "x"
[stack]
device = "memory"
filesystem = "tmpfs"
size = "512MiB"
[workload]
kind = "{}"
clients = 4
duration = "10s"
clients_from = ["c1", "c2"]
"""


@pytest.mark.parametrize("kind", ABLE)
def test_each_load_that_client_hosts_can_offer_is_understood(kind, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY.format(kind))
    (spec,) = make_plan(load_study(tmp_path / "study.toml"), seed=1).specs.values()
    load, address = workload_of(spec), Address(host="10.0.0.1", user="u", password="p", tls=Tls("required"))
    each = {name: asked_of(load, address, 5, (number, 2)) for number, name in enumerate(("c1", "c2"))}
    line = json_line(load={"each": each, "limit_seconds": limit_seconds(load.section)}, answer="/a")
    assert {name: vars(one) for name, one in parse("db2", line, message.OF_BLOCKS).load.each.items()} == each


@pytest.mark.parametrize(
    "facts",
    [
        [1],
        {},
        {"lacking": 5, "serials": []},
        {"lacking": [5], "serials": []},
        {"lacking": [], "serials": []},
        {"lacking": [], "serials": [], "awake": [], "versions": 5, "host": {}, "erases": {}, "free_bytes": 1},
        {"lacking": [], "serials": [], "versions": {"kernel": "6"}, "host": {"cores": "x"}, "free_bytes": 1},
        {"lacking": [], "serials": [], "versions": {"kernel": "6"}, "host": {"cores": 2}, "free_bytes": -1},
    ],
)
def test_facts_that_are_none_are_refused(facts):
    with pytest.raises(LieError, match=r"^db2: "):
        parse("db2", json_line(facts=facts), message.OF_FACTS)


def test_what_is_shown_of_a_host_is_fit_to_print():
    assert parse("db2", json_line(say=ESCAPES + "x\ny"), message.OF_BLOCKS).say.replace("\n", "").isprintable()
    facts = {"lacking": [ESCAPES], "serials": []}
    assert parse("db2", json_line(facts=facts), message.OF_FACTS).facts.lacking[0].isprintable()
    joined = parse(
        "db2", json_line(joined={ESCAPES: [{"a": ESCAPES}]}, versions={}, go="/go"), message.OF_BLOCKS
    ).joined
    assert all(key.isprintable() and of[0]["a"].isprintable() for key, of in joined.items())


@pytest.mark.parametrize(
    "image",
    [{"key": 5}, {"key": ""}, {"key": "k", "about": "a", "bytes": -1}, {"key": "k", "about": "a", "sha256": "x"}],
)
def test_images_that_are_none_are_refused(image):
    with pytest.raises(LieError, match=r"^db2: "):
        parse("db2", json_line(facts={"images": [image]}), message.OF_IMAGES)


@pytest.mark.parametrize(
    "event",
    [
        Joined("db2", 5),
        Joined("db2", {}, 7),
        Note(5),
        Joined("db2", {"a": object}),
        Joined("db2", {"a": json.loads("[" * 900 + "]" * 900)}),
        Finished("b1", 1, 1, "t1", sha256={"a": 5}),
        Started("b1", 2**70, 1, "t1"),
    ],
)
def test_nothing_is_appended_to_the_log_that_its_reader_refuses(event, tmp_path):
    held = append_event(tmp_path, Note("before"), LogSize())
    try:
        append_event(tmp_path, event, held)
    except (ValueError, TypeError):
        assert list(read_events(tmp_path)) == [Note("before")]
    else:
        assert len(list(read_events(tmp_path))) == 2


class Liar(ForkedSide):
    """A host that says ``lie(message)``, an iterable of bytes, in the place of the messages that have a field."""

    def __init__(self, side, field, lie):
        super().__init__(side.name, side.states, side.script_of, side.preparing)
        self.field, self.lie = field, lie

    def lines_of(self, message):
        return self.lie(message) if self.field in message else super().lines_of(message)


def lying(states, field, lie, names=HOSTS, **more):
    """A fleet of which db2 lies."""
    fleet = Fleet(states, names, **more)
    fleet.hosts._sides["db2"] = Liar(fleet.hosts._sides["db2"], field, lie)
    return fleet


def instead(line):
    return lambda _: [line + b"\n"]


def slowly(_host):
    """Blocks last a little, so that the host that lies is let begin one."""
    script = Script()
    script.rate = lambda *_: time.sleep(0.05) or 100.0
    return script


def flood(line):
    """More than is heard of any host; it ends, as the host's memory holds what nobody has read yet."""
    return lambda _: repeat(line * 1000, 100)


LIES = {
    "a number": ("asks", instead(b"5")),
    "a line that joined badly": ("joined", instead(b'{"joined": 5, "versions": {}, "go": "/go"}')),
    "another block": ("asks", instead(json_line(asks=7))),
    "a trial of no treatment": (
        "trial",
        instead(json_line(trial={"block": 1, "attempt": 1, "position": 1, "treatment": "t99"}, note="")),
    ),
    "a kernel that no trial needs": ("trial", instead(json_line(kernel="6.1.0-28-amd64"))),
    "a load of nobody's": ("trial", lambda _: [load() + b"\n"]),
    "a line without end": ("trial", flood(b"x" * 1000)),
    "lines without end": ("trial", flood(b'{"say": "x"}\n')),
}


@pytest.mark.parametrize("kind", LIES)
def test_the_run_goes_on_without_a_host_that_lies_and_its_log_can_be_read(kind, plan, into, states):
    made = plan(ON_THREE, blocks=6)
    fleet = lying(states, *LIES[kind], script_of=slowly)
    assert fleet.run(made, into).how == "done"
    run = read_run(into)
    assert (whole(into)["db2"], sum(whole(into).values())) == (0, 6)
    [named] = [one for one in run.notes if one.startswith("db2 no longer takes part: ")]
    assert named.isprintable()
    assert "dbdyno restore --hosts" in named
    assert sum("no longer takes part" in one for one in run.notes) == 1


def test_where_the_only_host_lies_the_run_fails_and_is_resumed_once_it_does_not(plan, into, states):
    made = plan(("[stack]", '[hosts]\nunder_test = ["db2"]\n[stack]'), blocks=2)
    with pytest.raises(HostError, match=r"no host is left \(db2: .*its block 1 is refused: ") as refused:
        lying(states, "block", tampered(b"junk", None), names=["db2"]).run(made, into)
    assert str(refused.value).isprintable()
    assert not list((into / ARRIVED).iterdir())
    assert not read_run(into).trials
    assert Fleet(states, ["db2"]).run(made, into, resume=True).how == "done"
    assert len(read_run(into).trials) == 4


def tampered(end, change):
    """Have the file of each block be another one, whose SHA-256 is right."""

    def lie(message):
        path = message["packed"]["path"]
        content = changed_tar(path, change) if change else end
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(content)
        message["packed"]["sha256"] = hashlib.sha256(content).hexdigest()
        return [json.dumps(message).encode() + b"\n"]

    return lie


def changed_tar(path, change):
    """The file with ``change`` made to what is in it: name -> content; with events as they are."""
    with tarfile.open(path) as packed:
        files = {one.name: packed.extractfile(one).read() if one.isreg() else None for one in packed.getmembers()}
    change(files)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as packed:
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            about.type, about.size = (tarfile.REGTYPE, len(content)) if content is not None else (tarfile.DIRTYPE, 0)
            packed.addfile(about, io.BytesIO(content or b""))
    return made.getvalue()


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """Where a run lies that has block 1 of db2 still to fold, for each test to copy."""
    return tmp_path_factory.mktemp("honest") / "run"


@pytest.fixture
def arrived(honest, plan, tmp_path, states):
    """A run folder in which block 1 of db2 has arrived, and is all that there is."""
    if not honest.exists():
        made = plan(("[stack]", '[hosts]\nunder_test = ["db2"]\n[stack]'), blocks=1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "dbdyno.run.fleet.coordinate.fold",
                lambda run, path: shutil.copy(path, honest.parent) and fold(run, path),
            )
            Fleet(states, ["db2"], series).run(made, honest)
        log = honest / "journal.jsonl"
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(line for line in lines if b'"trial"' not in line and b'"ended"' not in line))
        shutil.rmtree(honest / "trials")
        (honest / "trials").mkdir()
        shutil.move(honest.parent / "db2.1.tar", honest / ARRIVED)
    copy = tmp_path / "copy"
    shutil.copytree(honest, copy)
    return copy


def series(_host):
    script = Script()
    script.series = {"host_cpu": {"t_s": [0.0, 1.0], "%idle": [5.0, 6.0]}}
    return script


def of_events(change):
    """A change to the events of a block: what ``change`` makes of the list of them."""

    def changed(files):
        from dbdyno.store.events import event_in

        events = [event_in(line) for line in files["events.jsonl"].splitlines()]
        files["events.jsonl"] = b"".join(line if isinstance(line, bytes) else line_of(line) for line in change(events))

    return changed


def each(kind, **more):
    return of_events(lambda events: [replace(one, **more) if isinstance(one, kind) else one for one in events])


def of_trial(change):
    """A change to the first trial's own file, its SHA-256 in the log being right."""

    def changed(files):
        name = next(one for one in files if one.endswith("/trial.json"))
        found = json.loads(files[name])
        change(found)
        content = json.dumps(found).encode()
        summed(files, name, content)

    return changed


def summed(files, name, content):
    files[name] = content
    _, trial, file = name.split("/")

    def change(events):
        return [
            replace(one, sha256={**one.sha256, file: hashlib.sha256(content).hexdigest()})
            if isinstance(one, Finished) and one.trial == trial
            else one
            for one in events
        ]

    of_events(change)(files)


def parquet(content):
    def changed(files):
        summed(files, next(one for one in files if one.endswith("host_cpu.parquet")), content)

    return changed


def first(files, ending):
    return next(one for one in files if one.endswith(ending))


OUT_OF_IT = b'{"event": "started", "trial": "../../x", "block": 1, "attempt": 1, "treatment": "t1"}\n'
CHANGES = {
    "no events": lambda files: files.pop("events.jsonl"),
    "an empty log": of_events(lambda _: []),
    "a line that is no event": of_events(lambda events: [*events, b"5\n"]),
    "a line too deep": of_events(lambda events: [*events, b"[" * 100_000 + b"\n"]),
    "an event with a wrong sum": of_events(
        lambda events: [*events, b'{"event": "note", "text": "x", "sum": "00000000"}\n']
    ),
    "another block": each(Finished, block=2),
    "another attempt": each(Finished, attempt=2),
    "another's host": each(Finished, host="db1"),
    "another treatment": each(Finished, treatment="t9"),
    "a trial that is none": of_events(lambda events: [*events, Started("zzz", 1, 1, "t1")]),
    "a way out": of_events(lambda events: [*events, OUT_OF_IT]),
    "a host that joins": of_events(lambda events: [*events, Joined("db3", {"cores": 1})]),
    "another's end": of_events(lambda events: [*events, b'{"event": "ended", "how": "done"}\n']),
    "a plan": of_events(lambda events: [*events, b'{"event": "planned", "blocks": 1}\n']),
    "a block given up that is not its": of_events(lambda events: [*events, Note("x", given_up=2)]),
    "a treatment left out for nothing": of_events(lambda events: [*events, Dropped("t1", "x")]),
    "a trial that finishes twice": of_events(
        lambda events: [*events, *[one for one in events if isinstance(one, Finished)]]
    ),
    "a trial that fails as well": of_events(
        lambda events: [
            *events,
            *[Failed(one.trial, 1, 1, one.treatment, "x") for one in events if isinstance(one, Finished)],
        ]
    ),
    "a trial that is lost and was not there": of_events(
        lambda events: [
            *(one for one in events if not isinstance(one, Finished)),
            *[Lost(one.trial, 1, 1, one.treatment, "x") for one in events if isinstance(one, Finished)],
        ]
    ),
    "only what began": of_events(lambda events: [one for one in events if isinstance(one, Started)]),
    "no trial's own file": lambda files: files.pop(first(files, "trial.json")),
    "a trial's file for a folder": lambda files: (
        [files.pop(one) for one in [*files] if "/" in one] and files.update({"trials": b""})
    ),
    "a changed trial": lambda files: files.update({first(files, "trial.json"): b"{}"}),
    "a trial that is not its": of_trial(lambda found: found.update(id="x")),
    "a trial in another place": of_trial(lambda found: found.update(position=9)),
    "a field too many": of_trial(lambda found: found.update(unheard=1)),
    "a metric that is no number": of_trial(lambda found: found["metrics"].update(queries_per_second=float("nan"))),
    "a metric without end": of_trial(lambda found: found["metrics"].update(queries_per_second=float("inf"))),
    "a metric below 0": of_trial(lambda found: found["metrics"].update(queries_per_second=-5.0)),
    "a metric as text": of_trial(lambda found: found["metrics"].update(queries_per_second="5")),
    "a time below 0": of_trial(lambda found: found["seconds"].update(load=-1e9)),
    "a state elsewhere": of_trial(lambda found: found.update(cuts=[cut(kept="../../../x")])),
    "a cut of a name that is none": of_trial(lambda found: found.update(cuts=[cut(id="../x")])),
    "a cut that lost less than nothing": of_trial(lambda found: found.update(cuts=[cut(lost=-1)])),
    "a series that is none": parquet(b"PAR1 x PAR1"),
    "an empty series": parquet(b""),
    "a series with another sum": lambda files: files.update({first(files, ".parquet"): b"x"}),
    "a series without a sum": lambda files: files.update({f"{first(files, 'trial.json')[:-10]}x.parquet": b"x"}),
    "a series that is missing": lambda files: files.pop(first(files, ".parquet")),
    "a file beside the trials": lambda files: files.update({"run.toml": b"x"}),
    "a trial of nobody's": lambda files: files.update({"trials/b0002a1p001-t1/trial.json": b"{}"}),
    "a folder that no trial has": lambda files: files.update({f"{first(files, 'trial.json')[:-10]}bin/x": b"x"}),
    "a hidden file": lambda files: files.update({f"{first(files, 'trial.json')[:-10]}.x": b"x"}),
}


def cut(**more):
    return {
        "id": "c1",
        "mode": "power",
        "when": "uniform",
        "survivors": "none",
        "seed": 1,
        "at_s": 1.0,
        "outcome": "nothing",
        "acked": 1,
        **more,
    }


def test_an_honest_block_is_folded(arrived):
    folder = RunFolder(arrived)
    assert fold_leftovers(folder) == []
    folder.close()
    assert len(read_run(arrived).trials) == 2


@pytest.mark.parametrize("kind", CHANGES)
def test_a_block_that_a_host_can_t_have_is_refused_whole_and_resuming_goes_on(kind, arrived):
    path = arrived / ARRIVED / "db2.1.tar"
    path.write_bytes(changed_tar(path, CHANGES[kind]))
    log = (arrived / "journal.jsonl").read_bytes()
    folder = RunFolder(arrived)
    try:
        [note] = fold_leftovers(folder)
        assert note.text.startswith("db2: its block 1 is refused: ")
        assert note.text.endswith("; it is measured again")
        assert note.text.isprintable()
        assert str(arrived) not in note.text
        folder.append(note)
    finally:
        folder.close()
    assert (arrived / "journal.jsonl").read_bytes().startswith(log)
    assert read_run(arrived).trials == lost_trials(arrived) == [*(arrived / "trials").iterdir()] == []
    assert not list((arrived / ARRIVED).iterdir())


def test_what_a_block_says_is_fit_to_print_in_the_log(arrived):
    path = arrived / ARRIVED / "db2.1.tar"
    path.write_bytes(changed_tar(path, of_events(lambda events: [*events, Note(ESCAPES)])))
    folder = RunFolder(arrived)
    assert fold_leftovers(folder) == []
    folder.close()
    assert all(one.isprintable() for one in read_run(arrived).notes)


# How much and how long a host is listened to: by what the plan has it do.


HOUR_SECONDS = 3600.0


def test_a_short_study_waits_hours_at_most_and_takes_gigabytes_at_most(plan):
    made = plan(ON_THREE, blocks=6)
    assert 24 * HOUR_SECONDS < idle_seconds_max(made, {}) < 26 * HOUR_SECONDS  # its load may take a day
    assert idle_seconds_max(made, {"t1": 9.0}) == idle_seconds_max(made, {})
    assert idle_seconds_max(made, {"t1": 9.0, "t2": 5.0}) < 2 * HOUR_SECONDS
    assert idle_seconds_max(made, {"t1": 1e300, "t2": 5.0}) == idle_seconds_max(made, {})  # as a host may say
    assert 256 * 1024**2 < block_bytes_max(made) < 16 * 1024**3
    assert states_bytes_max(made) == 0


def test_a_host_that_says_nothing_is_left_out(plan, into, states, monkeypatch):
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


def test_a_host_that_only_says_that_it_goes_on_is_left_out_in_the_end(plan, into, states, monkeypatch):
    monkeypatch.setattr(coordinate, "idle_seconds_max", lambda *_: 2.0)
    monkeypatch.setattr(host_program, "BEAT_SECONDS", 0.1)
    fleet = Fleet(states, script_of=slowly)
    lines_of = fleet.hosts._sides["db2"].lines_of
    fleet.hosts._sides["db2"].lines_of = lambda message: lines_of(message) if {"beats", "facts"} & {*message} else []
    assert fleet.run(plan(ON_THREE, blocks=6), into).how == "done"
    assert whole(into)["db2"] == 0
    assert any("db2 no longer takes part: it has made no progress for" in one for one in read_run(into).notes)
