"""Every verb there is: it has --json, an example in docs/commands.md, and one sentence for what is no use of it."""

import subprocess
import sys

import pytest

from dbdyno.cli.main import LOAD_VERBS, every_command
from dbdyno.stack.tools import own_binary
from tests.documents import ROOT, blocks


def verbs(command=None, words=()):
    """The words of each command that does something, with the command; a group that does is one, too."""
    command = command or every_command()
    below = getattr(command, "commands", {})
    if words and (not below or command.invoke_without_command):
        yield words, command
    for name, one in below.items():
        yield from verbs(one, (*words, name))


EVERY = dict(verbs())
OURS = {words: command for words, command in EVERY.items() if words[0] not in LOAD_VERBS}
EXAMPLES = [words for one in blocks(ROOT / "docs/commands.md") if not one.not_run for words in one.commands]
each_of_ours = pytest.mark.parametrize("words", OURS, ids=" ".join)


def test_the_verbs_are_found():
    assert {("plan",), ("images",), ("images", "clear"), ("disk", "fault", "eio"), ("slap",)} <= EVERY.keys()
    assert ("disk",) not in EVERY


@each_of_ours
def test_every_verb_has_json(words):
    options = [one for one in OURS[words].params if "--json" in one.opts]
    assert len(options) == 1, f"dbdyno {' '.join(words)} has no --json: what it finds or does, as an object"


@pytest.mark.parametrize("verb", LOAD_VERBS)
def test_every_verb_of_the_load_generator_has_json(verb):
    done = subprocess.run([own_binary("dbdyno-load"), verb, "--help"], capture_output=True, text=True, check=True)
    assert "  --json=.." in done.stdout


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_verb_has_an_example(words):
    example = [one for one in EXAMPLES if tuple(one[1 : len(words) + 1]) == words]
    assert example, f"docs/commands.md has no example of dbdyno {' '.join(words)}"


SLOW_LOG = """\
# Time: 2026-11-01T10:00:00.000000Z
# User@Host: a[a] @ localhost []  Id:     1
# Query_time: 0.000100  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1
use shop;
SET timestamp=1793527200;
SELECT 1;
"""


@pytest.mark.parametrize("verb", LOAD_VERBS)
def test_examples_of_the_load_generator_are_understood(verb, tmp_path):
    """It is asked for a server that is not there: 1; a flag that it does not know is 2, and so is a missing file."""
    (tmp_path / "mine.sql").write_text("SELECT 1;\n", encoding="utf-8")
    (tmp_path / "slow.log").write_text(SLOW_LOG, encoding="utf-8")
    for _, *words in (one for one in EXAMPLES if one[1] == verb and "--help" not in one):
        flags = [word for word in words if not word.startswith("--socket")]
        command = [own_binary("dbdyno-load"), *flags, "--host=127.0.0.1", "--port=1"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        lacks_ledger = "sent.bin: No such file or directory" in done.stderr  # which only a run writes
        assert (done.returncode, done.stdout) == (2 if lacks_ledger else 1, ""), (words, done.stderr)


@each_of_ours
def test_every_verb_says_what_it_does_and_each_option_too(words):
    assert OURS[words].help
    lacking = [one.name for one in OURS[words].params if not one.help]
    assert lacking == []


@each_of_ours
def test_a_typo_in_an_option_of_any_verb(dbdyno, words):
    code, out, err = dbdyno(*words, "--jsn")
    assert (code, out) == (2, "")
    assert err.startswith(f"dbdyno: {' '.join(words)} has no option '--jsn'; did you mean ")
    assert "--json" in err
    assert err.endswith("?\n")


@pytest.mark.parametrize("words", [words for words in EVERY if words != ("quick",)], ids=" ".join)
def test_a_typo_in_any_verb(dbdyno, words):
    typo = f"{words[-1]}x"
    code, out, err = dbdyno(*words[:-1], typo)
    assert (code, out) == (2, "")
    assert err.startswith(f"dbdyno: no such command '{typo}'. Did you mean ")
    assert repr(words[-1]) in err
    assert err.count("\n") == 1


def takes(command):
    """How many words a verb takes; ``None`` for any number."""
    words = [one for one in command.params if one.param_type_name == "argument"]
    return None if any(one.nargs == -1 for one in words) or hasattr(command, "commands") else len(words)


COUNTED = {words: count for words, command in OURS.items() if (count := takes(command)) is not None}


@pytest.mark.parametrize("words", COUNTED, ids=" ".join)
def test_a_word_too_many_of_any_verb_that_counts_them(dbdyno, words):
    code, out, err = dbdyno(*words, *["x"] * (COUNTED[words] + 1))
    assert (code, out) == (2, "")
    assert err.startswith("dbdyno: ")
    assert err.count("\n") == 1


def test_a_reader_that_goes_away_and_streams_that_are_closed(tmp_path, state):
    """No traceback, whatever the shell did to the standard streams."""
    program = f"DBDYNO_STATE_DIR={state} {sys.executable} -m dbdyno.cli.main"
    study = ROOT / "studies/examples/demo.toml"
    cases = {
        f"set -o pipefail; {program} plan {study} --json | head -c 1 > /dev/null": {0, 1},
        f"{program} disk models >&-": {0},
        f"{program} disk models 2>&-": {0},
        f"{program} nothing 2>&-": {2},
        f"{program} new {tmp_path}/n.toml <&-": {2},
        f"{program} new {tmp_path}/n.toml < /dev/null": {2},
        f"{program} doctor --quick <&- >&- 2>&-": {0},
    }
    for line, codes in cases.items():
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        assert done.returncode in codes, (line, done)
        assert "Traceback" not in done.stderr, (line, done)
        assert done.stderr.count("\n") <= 1, (line, done)
