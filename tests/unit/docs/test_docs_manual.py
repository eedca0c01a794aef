"""dbdyno(1): every command and option stands in it, as they are typed, and no reader of such pages complains."""

import os
import re
import shutil
import subprocess

import pytest

from dbdyno.cli.main import LOAD_VERBS
from dbdyno.cli.suite import INSTALLED
from scripts.manual import PLACES, files
from tests.unit.cli.test_cli_tree import EVERY, OURS


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("man") / "dbdyno.1"
    path.write_text(files()["share/man/man1/dbdyno.1"], encoding="utf-8")
    return path


def read(page):
    """The page as it is read, 300 columns wide; skips where there is no man."""
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("no man")
    environment = {**os.environ, "MANWIDTH": "300", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"}
    done = subprocess.run(
        ["man", "--warnings", "-l", page], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return re.sub(r".\x08|\x1b\[[0-9;]*m", "", done.stdout)


def test_every_command_and_option_stands_in_it(page):
    text = read(page)
    for words in EVERY:
        assert f"dbdyno {' '.join(words)}" in text, words
    for words, command in OURS.items():
        section = re.split(rf"^   dbdyno {' '.join(words)}$", text, maxsplit=1, flags=re.MULTILINE)[1]
        section = re.split(r"^(?:   )?\S", section, maxsplit=1, flags=re.MULTILINE)[0]
        assert [one.opts for one in command.params if one.opts[-1] not in section and "-" in one.opts[-1]] == [], words
        assert " ".join(command.help.split())[:60] in " ".join(section.split()), words


def test_it_says_how_a_command_ends_and_what_it_reads(page):
    text = read(page)
    for said in ("NAME\n", "SYNOPSIS\n", "EXIT STATUS\n", "ENVIRONMENT\n", "DBDYNO_STATE_DIR", "FILES\n", *LOAD_VERBS):
        assert said in text
    assert re.search(r"^ +130 +Interrupted", text, re.MULTILINE)
    assert not re.search(r"[`|\]]\(|\*\*", text), "no Markdown is left"


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="no mandoc")
def test_the_other_reader_of_manuals_has_no_warning(page):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_text_is_no_request_to_roff():
    from scripts.manual.page import _plain

    assert _plain(".so /etc/passwd") == "\\&.so /etc/passwd"
    assert _plain('\\fB "x" --y') == "\\efB \\(dqx\\(dq \\-\\-y"
    assert all(not line.startswith(".") for line in _plain("a" * 78 + " .so x").splitlines())


def test_completion_lies_where_the_shells_look():
    others = {place for place in files() if not place.startswith(f"{INSTALLED}/")}
    assert {"share/man/man1/dbdyno.1", *PLACES.values()} == others
    assert files()[PLACES["zsh"]].startswith("#compdef dbdyno\n")
