"""A host that lies: whatever it sends, one sentence comes of it, soon, in little memory, and fit for a terminal."""

import json
import random
import resource
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.hosts import connections
from dbdyno.hosts import ssh as channels
from dbdyno.hosts.connections import Connections
from dbdyno.hosts.contract import LieError
from dbdyno.hosts.frames import (
    BODY_BYTES_MAX,
    HEAD,
    OBJECT_BYTES_MAX,
    Arriving,
    Bootable,
    Called,
    Cores,
    Echoed,
    Facts,
    Guarding,
    HowFar,
    Inputs,
    Installed,
    Nothing,
    PutBack,
    Running,
    for_people,
    pack_frame,
    parse_rows,
    read_answer,
    side_answer,
    side_value,
)
from dbdyno.hosts.installer import MAGIC
from dbdyno.hosts.look import facts
from dbdyno.hosts.ssh import Channel, offsets
from tests.support import wait_for

TRICK = "\x1b[2J\u202e\x9b31m"


def liar(program, *words):
    """A host that runs this Python; what it is asked comes on its standard input."""
    return Channel("db1", [sys.executable, "-ISc", f"import os, sys, time\n{program}", *words], login="ssh db1")


def refused(channel, kind=Nothing, seconds=20.0):
    with pytest.raises(HostError, match=r"^db1: ") as error:
        channel.ask_in_lines({"do": "x"}, kind, seconds)
    said = str(error.value)
    assert said.isprintable()
    assert len(said) < 1000
    return said


FLOODS = [
    ("while True: os.write(1, b'Welcome\\n' * 1000)", "prints more than 256 KiB before its answer"),
    ("while True: os.write(1, b'\\n' * 65536)", "prints more than 256 KiB before its answer"),
    ("while True: os.write(1, b'x' * 65536)", "sent more than 256 KiB in one line"),
    ("while True: os.write(1, b'x' * 4000000 + b'\\n')", "sent more than 256 KiB in one line"),
    ("while True: os.write(2, b'e' * 65536)", "writes more than 256 KiB to standard error, beginning with: eee"),
    ("while True: os.write(2, b'\\x1b[2J no\\n')", "writes more than 256 KiB to standard error, beginning with: [2J"),
    ("os.write(2, b'e' * 10**6); sys.exit(1)", "writes more than 256 KiB to standard error"),
    (f"os.write(1, {MAGIC!r} + b'[' * 200000 + b'\\n'); sys.stdin.read()", "read: it is nested too deep"),
    (f"os.write(1, {MAGIC!r} + b'{{\"a\":' * 40000 + b'\\n'); sys.stdin.read()", "it is nested too deep"),
    (f"os.write(1, {MAGIC!r} + b'9' * 100000 + b'\\n'); sys.stdin.read()", "a number of too many digits"),
    (f"os.write(1, {MAGIC!r} + b'\\xff\\xfe\\n'); sys.stdin.read()", "can't be read: it is not UTF-8 text"),
    (f"os.write(1, {MAGIC!r} + b'5\\n'); sys.stdin.read()", "can't be read: it is not a JSON object"),
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
        pytest.raises(HostError, match="accepts no more data"),
    ):
        channel.send(bytes(10**7), 0.3)


@pytest.fixture(scope="module")
def true_facts():
    return {**facts(Path("/")), "ssh_from": "10.0.0.1", "ssh_to": "10.0.0.2"}


def test_the_truth_is_taken_and_what_another_dbdyno_says_beside_it_is_passed_over(true_facts):
    found = read_answer("db1", json.dumps({**true_facts, "later": [{"x": 1}]}).encode(), Facts)
    assert asdict(found) == json.loads(json.dumps(true_facts))


WRONG = [5, -1, 2**70, True, None, [], {}, [1], {"x": TRICK}, 1.5, [[[]]], "x" * 100_000, TRICK, [TRICK], ["x"] * 5000]


def kinds():
    answers = {
        Installed: {"installed": True},
        Guarding: {"token": "t", "folder": "/f"},
        PutBack: {"undone": [], "whole": True, "left_alone": [], "over": True},
        Echoed: {"received": [1, 2], "answered": [3, 4]},
        Inputs: {"folder": "/f", "lacking": ["x"]},
        Cores: {"cores": 2},
        HowFar: {"reached": {"1": 0.5}},
        Running: {"kernel": "6.1", "boot": "0a1b"},
        Bootable: {"lacking": ["x"]},
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
        assert isinstance(answered(kind, without), Answered)
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
        with pytest.raises(HostError, match=r"^db1: its answer can't be read: .*; dbdyno hosts up installs this"):
            read_answer("db1", text.encode(), Facts)
    for given in ("-x", "; touch /x", "a b", "$(x)"):
        assert "ssh_from is not an address" in answered(Facts, {**true_facts, "ssh_from": given}).said


def test_of_many_sentences_as_many_are_shown_as_a_person_reads():
    found = answered(PutBack, {"undone": [TRICK + "x" * 5000] * 40, "whole": True, "left_alone": [], "over": True})
    assert for_people(found.undone) == tuple(found.undone)
    found = answered(PutBack, {"undone": ["x"] * 900, "whole": False, "left_alone": [], "over": True})
    assert (len(for_people(found.undone)), for_people(found.undone)[-1]) == (51, "and 850 more")


# A host that begins as an agent does, and then answers each question by what ``answer`` makes of its number.
AGENT = """
import struct
os.write(1, {magic!r} + b'{{"agent": 1}}\\n')
head = struct.Struct(">QII")
while len(asked := sys.stdin.buffer.read(16)) == 16:
    number, text, body = head.unpack(asked)
    sys.stdin.buffer.read(text + body)
    {answer}
    sys.stdout.buffer.flush()
"""


def lying_agent(answer):
    return liar(AGENT.format(magic=MAGIC, answer=answer)).begin_frames()


def frame(content, body="b''", number="number"):
    return f"sys.stdout.buffer.write(head.pack({number}, {len(content)}, len({body})) + {content!r} + {body})"


LYING = {
    "another question's": (frame(b"{}", number="number + 7"), "has sent an answer without a question"),
    "twice": (frame(b"{}") + "; " + frame(b"{}"), "has sent an answer without a question"),
    "an object without end": ("sys.stdout.buffer.write(head.pack(number, 2**32 - 1, 0))", "more than its limit"),
    "bytes without end": ("sys.stdout.buffer.write(head.pack(number, 2, 2**32 - 1))", "more than its limit"),
    "bytes where there are none": (frame(b"{}", "b'x' * 5"), "has 7 bytes, more than its limit"),
    "noise": ("sys.stdout.buffer.write(os.urandom(64))", "an answer without a question"),
    "no JSON": (frame(b"\xff\xfe"), "can't be read"),
    "nested": (frame(b"[" * 100_000), "can't be read"),
    "no object": (frame(b"5"), "can't be read"),
    "nothing": (frame(b""), "can't be read"),
    "a pickle": (frame(b"cposix\nsystem\n(S'touch /tmp/x'\ntR."), "can't be read"),
    "the end": ("sys.exit(3)", "the connection ended"),
    "an error of its own": (frame(json.dumps({"failed": {"kind": "host", "text": TRICK}}).encode()), "db1: [2J"),
    "an error that is none": (frame(b'{"failed": 5}'), "can't be read"),
    "an error without words": (frame(b'{"failed": {"kind": "x", "text": ""}}'), "reported an error without a reason"),
    "silence": ("pass", "no answer in"),
    "a part": ("sys.stdout.buffer.write(head.pack(number, 20, 0) + b'{')", "no answer in"),
    "a flood of complaints": ("[os.write(2, b'e' * 65536) for _ in range(100)]", "256 KiB to standard error"),
}


@pytest.mark.parametrize("kind", LYING)
def test_an_answer_of_an_agent_that_is_none_is_one_sentence(kind):
    answer, said = LYING[kind]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with lying_agent(answer) as channel:
        if kind == "twice":
            channel.ask({"do": "release"}, Nothing, 20.0)
        with pytest.raises(HostError, match=r"^db1: ") as error:
            channel.ask({"do": "release"}, PutBack, 1.0 if "no answer" in said else 20.0)
    assert said in str(error.value)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 1000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, "KiB"


ECHOES = [
    {}, {"received": [1], "answered": [1, 2]}, {"received": [1, -2], "answered": [1, 2]},
    {"received": [1, 2**62 + 1], "answered": [1, 2]}, {"received": ["a", "b"], "answered": [1, 2]},
    {"received": [1, 2, 3], "answered": [1, 2]}, {"received": [1, 1], "answered": [2**61, 1]}, {"received": 5},
]  # fmt: skip


@pytest.mark.parametrize("echo", ECHOES)
def test_echoes_that_are_none(echo):
    content = json.dumps(echo).encode()
    with lying_agent(frame(content)) as channel, pytest.raises(HostError, match=r"^db1: ") as error:
        offsets(channel, 1)
    assert len(str(error.value)) < 300


SIDE = {
    "content": b"x" * 100,
    "piece": b"x" * 100,
    "read": ([(False, b"abc"), (True, b"de")], None),
    "entries": [(".", 16877, 0, 0, 5, 0, ""), ("a", 33188, 0, 0, 5, 9, "")],
    "pieces": [("a", 0, 9)],
    "start": "0123456789ab",
    "signal": True,
    "append": None,
}
KINDS = [Facts, PutBack, Echoed, Guarding, Inputs, Cores, HowFar, Running, Bootable, Called, Nothing]


def mutated(chance, content):
    """The bytes of frames, changed as a fuzzer does."""
    made = bytearray(content)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(made) + 1)
        match chance.randrange(6):
            case 0:
                made[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del made[at : at + chance.randint(1, 20)]
            case 2:
                made[at:at] = chance.randbytes(chance.randint(1, 20))
            case 3:
                made[at:at] = chance.choice([b"[", b"{", b'"', b"9" * 30, b"-1", b"null", b"1e999", b"\x00", b"../"])
            case 4:
                made[at : at + 4] = chance.choice([b"\xff" * 4, b"\0" * 4, b"\0\0\0\1"])
            case _:
                made += made[: chance.randint(0, 40)]
    return bytes(made)


def test_two_thousand_broken_frames_are_answers_or_lies_and_nothing_else():
    """Whatever bytes come: a value of its type, an error that an agent may give, or a lie; and that within bounds."""
    chance, seen, said = random.Random(7), Counter(), []
    for _ in range(2000):
        what = chance.choice([*SIDE, "facts"])
        asked, (content, body) = what, side_answer(what, SIDE[what]) if what in SIDE else ({"cores": 3}, b"")
        stream = mutated(chance, pack_frame(1, content, body) + pack_frame(2, {"value": "x"}))

        def bounds(number, asked=asked):
            if number not in {1, 2}:
                raise LieError("what was not asked")
            return OBJECT_BYTES_MAX, BODY_BYTES_MAX.get(asked, 0)

        arriving, at = Arriving(bounds), 0
        try:
            while at < len(stream):
                size = chance.randint(1, 40)
                for found in arriving.take(stream[at : at + size]):
                    assert len(found.body) <= BODY_BYTES_MAX.get(asked, 0)
                    if what in SIDE:
                        side_value("db1", what, found)
                    read_answer("db1", found.content, chance.choice(KINDS))
                    seen["taken"] += 1
                at += size
        except (HostError, OSError, KeyError) as error:
            seen[type(error).__name__] += 1
            said.append(str(error))
    assert all(one.isprintable() for one in said)
    assert seen["taken"] > 20
    assert seen["LieError"] > 500


def test_an_answer_is_bounded_before_it_has_arrived():
    arriving = Arriving(lambda _: (100, 100))
    with pytest.raises(LieError, match="has 101 bytes"):
        list(arriving.take(HEAD.pack(1, 101, 0)))


def test_a_host_that_answers_what_was_not_asked_is_lost():
    lines = Connections({"db1": lying_agent(frame(b"{}") + ";" + frame(b"{}"))})
    try:
        wait_for(lines.lost)
        assert lines.lost() == {"db1": "db1: has sent an answer without a question"}
        with pytest.raises(HostError, match="db1: has sent an answer without a question"):
            lines.ask("db1", {"do": "release"}, PutBack)
    finally:
        lines.close()


def test_a_host_that_only_drips_is_lost(monkeypatch):
    monkeypatch.setattr(connections, "_BEAT_SECONDS_MAX", 1.0)
    drip = "os.write(1, head.pack(number, 50, 0))\n    while True: os.write(1, b' '); time.sleep(.05)"
    lines = Connections({"db1": lying_agent(drip)})
    try:
        wait_for(lines.lost)
        assert lines.lost()["db1"].startswith("db1: has not answered for")
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
        "db1: WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED; it was reinstalled, or another machine"
    )
    assert "rm -rf" not in said


@pytest.mark.parametrize(
    ("body", "said"),
    [(b"[]\n" * 2_000_001, "more than 2000000 rows"), (b"[1, 2]", "its last row is cut off"),
     (b"[1,2,3,4,5,6,7,8]\n", "not a list of rows"), (b"[[1]]\n", "not a list of rows"),
     (b"5\n", "not a list of rows")],
    ids=["flood", "cut", "wide", "nested", "none"],
)  # fmt: skip
def test_rows_without_measure_are_none(body, said):
    with pytest.raises(ValueError, match=said):
        parse_rows(body)
