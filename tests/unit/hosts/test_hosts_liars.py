"""A host that lies: whatever it sends, one sentence comes of it, soon, in little memory, and fit for a terminal."""

import json
import resource
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.hosts import channel as channels
from dbdyno.hosts.answers import (
    Beaten,
    Echoed,
    Facts,
    Guarding,
    Installed,
    LeftBehind,
    PutBack,
    RayStarted,
    read_answer,
)
from dbdyno.hosts.channel import Channel
from dbdyno.hosts.installer import MAGIC
from dbdyno.hosts.kept import Kept
from dbdyno.hosts.look import facts
from dbdyno.hosts.reach import offsets
from tests.support import wait_for

TRICK = "\x1b[2J\u202e\x9b31m"
RAY = {"cluster": "c", "processes": 3, "raylet": True, "head": False, "python": "/p", "folder": "/f"}


def liar(program, *words):
    """A host that runs this Python; what it is asked comes on its standard input."""
    return Channel("db1", [sys.executable, "-ISc", f"import os, sys, time\n{program}", *words])


def refused(channel, kind=Beaten, seconds=20.0):
    with pytest.raises(HostError, match=r"^db1: ") as error:
        channel.ask({"do": "x"}, kind, seconds)
    said = str(error.value)
    assert said.isprintable()
    assert len(said) < 1000
    return said


FLOODS = [
    ("while True: os.write(1, b'Welcome\\n' * 1000)", "prints more than 256 KiB before its answer"),
    ("while True: os.write(1, b'\\n' * 65536)", "prints more than 256 KiB before its answer"),
    ("while True: os.write(1, b'x' * 65536)", "says more than 256 KiB in one line"),
    ("while True: os.write(1, b'x' * 4000000 + b'\\n')", "says more than 256 KiB in one line"),
    ("while True: os.write(2, b'e' * 65536)", "writes more than 256 KiB to standard error, beginning with: eee"),
    ("while True: os.write(2, b'\\x1b[2J no\\n')", "writes more than 256 KiB to standard error, beginning with: [2J"),
    ("os.write(2, b'e' * 10**6); sys.exit(1)", "writes more than 256 KiB to standard error"),
    (f"os.write(1, {MAGIC!r} + b'[' * 200000 + b'\\n'); sys.stdin.read()", "understood: it is nested too deep"),
    (f"os.write(1, {MAGIC!r} + b'{{\"a\":' * 40000 + b'\\n'); sys.stdin.read()", "it is nested too deep"),
    (f"os.write(1, {MAGIC!r} + b'9' * 100000 + b'\\n'); sys.stdin.read()", "a number of too many digits"),
    (f"os.write(1, {MAGIC!r} + b'\\xff\\xfe\\n'); sys.stdin.read()", "not understood: it is no UTF-8 text"),
    (f"os.write(1, {MAGIC!r} + b'5\\n'); sys.stdin.read()", "not understood: it is no JSON object"),
    (f"os.write(2, {TRICK.encode()!r} + b' no\\n'); sys.exit(3)", "[2J"),
    ("sys.exit(3)", "the connection ended (exit 3)"),
]  # fmt: skip


@pytest.mark.parametrize(("program", "said"), FLOODS)
def test_what_has_no_end_has_one_here(program, said):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with liar(program) as channel:
        assert said in refused(channel)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000, "KiB"


def test_lines_that_keep_coming_and_bytes_that_drip_meet_the_deadline(monkeypatch):
    monkeypatch.setattr(channels, "_UNASKED_MAX_BYTES", 2**40)
    for program in ("while True: os.write(1, b'y\\n' * 30000)", "while True: time.sleep(.01); os.write(1, b'x')"):
        with liar(program) as channel:
            assert refused(channel, seconds=0.3) == "db1: no answer in time"


def test_one_that_takes_what_it_is_sent_a_byte_at_a_time_is_given_up(monkeypatch):
    monkeypatch.setattr(channels, "_SLOWEST_BYTES_PER_SECOND", 10**9)
    with (
        liar("while os.read(0, 4096): time.sleep(.01)") as channel,
        pytest.raises(HostError, match="does not take what"),
    ):
        channel.send(bytes(10**7), 0.3)


@pytest.fixture(scope="module")
def true_facts():
    found = {**facts(Path("/"), Path("/dev/shm")), "ssh_from": "10.0.0.1", "ssh_to": "10.0.0.2", "ray": RAY}
    return {**found, "lacking": [], "tls": {"on": False, "wrong": [], "authorities": []}}


def test_the_truth_is_taken_and_what_another_dbdyno_says_beside_it_is_passed_over(true_facts):
    found = read_answer("db1", json.dumps({**true_facts, "later": [{"x": 1}]}).encode(), Facts)
    assert asdict(found) == json.loads(json.dumps(true_facts))


WRONG = [5, -1, 2**70, True, None, [], {}, [1], {"x": TRICK}, 1.5, [[[]]], "x" * 100_000, TRICK, [TRICK], ["x"] * 5000]


def kinds():
    answers = {
        Installed: {"installed": True},
        Guarding: {"token": "t", "folder": "/f"},
        PutBack: {"undone": [], "whole": True},
        LeftBehind: {"undone": [], "left_alone": [], "whole": True, "over": True},
        RayStarted: {"started": True, "ray": RAY},
        Echoed: {"echoes": [[[1, 2, 3, 4], [1, 2, 3, 4]]]},
    }
    return [pytest.param(kind, answer, id=kind.__name__) for kind, answer in answers.items()]


@dataclass
class Answered:
    """What came of an answer: a value or a sentence."""

    said: str = ""


def answered(kind, answer):
    try:
        found = read_answer("db1", json.dumps(answer).encode(), kind)
    except HostError as error:
        found = Answered(str(error))
    texts = [found.said] if isinstance(found, Answered) else [*_texts(asdict(found))]
    assert all(text.isprintable() and len(text) <= 1100 for text in texts)
    return found


def _texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from _texts(item)


def lie_about(kind, answer):
    """Every field with every wrong value, without it, and every answer that is none at all."""
    for field in answer:
        without = {name: value for name, value in answer.items() if name != field}
        assert isinstance(answered(kind, without), Answered) or field == "tls"
        for value in WRONG:
            answered(kind, {**answer, field: value})
    for value in (*WRONG, {"error": 5}, {"error": TRICK * 900}, {"error": ["x"]}, {"error": None}, {"error": ""}):
        assert isinstance(answered(kind, value), Answered)


@pytest.mark.parametrize(("kind", "answer"), kinds())
def test_each_field_of_each_answer_is_held_to_its_type(kind, answer):
    lie_about(kind, answer)


def test_so_are_the_facts(true_facts):
    lie_about(Facts, true_facts)
    for said in ("NaN", "Infinity", "-1", "1e400", "9" * 400, "9" * 5000, "true", '"12"'):
        text = json.dumps({**true_facts, "memory_bytes": 0}).replace('"memory_bytes": 0', f'"memory_bytes": {said}')
        with pytest.raises(HostError, match=r"^db1: its answer is not understood: .*; dbdyno hosts up puts this"):
            read_answer("db1", text.encode(), Facts)
    for given in ("-x", "; touch /x", "a b", "$(x)"):
        assert "ssh_from is no address" in answered(Facts, {**true_facts, "ssh_from": given}).said


def test_of_many_sentences_as_many_are_shown_as_a_person_reads():
    found = answered(PutBack, {"undone": [TRICK + "x" * 5000] * 40, "whole": True})
    assert found.sentences() == tuple(found.undone)
    found = answered(PutBack, {"undone": ["x"] * 900, "whole": False})
    assert (len(found.sentences()), found.sentences()[-1]) == (51, "and 850 more")


ECHOES = {
    "text": "a b c d", "short": "1 2", "long": "1 2 3 4 5", "huge": "9" * 5000 + " 1 2 3", "below 0": "-5 -5 -5 -5",
    "empty": "", "beyond 62 bits": "9" * 19 + " 1 1 1", "no numbers": "inf nan 1 1", "other digits": "\u0661 1 1 1",
    "from long ago": "1 1 9000000000000000000 1",
}  # fmt: skip


@pytest.mark.parametrize("line", ECHOES.values(), ids=ECHOES)
def test_echoes_that_are_none(line):
    program = (
        "sys.stdin.readline(); os.write(1, b'ready\\n')\nwhile sys.stdin.readline(): print(sys.argv[1], flush=True)"
    )
    with liar(program, line) as channel, pytest.raises(HostError, match=r"^db1: its clocks can't be read: ") as error:
        offsets(channel, 1)
    assert len(str(error.value)) < 200


STAMPS = [
    [],
    [[[1, 2, 3, 4]] * 2] * 2,
    [[1, 2]],
    [[[1, 2, 3, 4], [1, 2]]],
    [[[1, 2, 3, -4]] * 2],
    [[[0, 0, 2**62, 0]] * 2],
]


@pytest.mark.parametrize("echoes", STAMPS)
def test_echoes_of_its_own_that_are_none(echoes):
    program = (
        "sys.stdin.readline(); os.write(1, b'ready\\n'); sys.stdin.readline(); print(1, 1, 1, 1, flush=True)\n"
        f"os.write(1, b'?\\n'); sys.stdin.readline(); os.write(1, {MAGIC!r} + sys.argv[1].encode() + b'\\n')"
    )
    with liar(program, json.dumps({"echoes": echoes})) as channel, pytest.raises(HostError, match=r"^db1: "):
        offsets(channel, 1)


def test_a_host_that_answers_what_was_not_asked_is_lost():
    lines = Kept({"db1": liar(f"os.write(1, {MAGIC + b'{}'!r} + b'\\n')\nsys.stdin.read()")})
    try:
        wait_for(lines.lost, seconds=20)
        assert lines.lost() == {"db1": "db1: has answered what was not asked"}
    finally:
        lines.close()


CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
  remove with: rm -rf /
Host key verification failed.
"""


def test_a_host_key_that_has_changed_is_not_to_be_accepted_by_habit():
    with liar(f"os.write(2, {CHANGED.encode()!r}); sys.exit(255)") as channel:
        said = refused(channel)
    assert said.startswith(
        "db1: WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED; it was set up anew, or another machine"
    )
    assert "rm -rf" not in said
