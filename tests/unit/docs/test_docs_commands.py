"""What the documents tell a reader to type is typed here: studies are planned, commands run, Python executed.

What measures is only parsed, and its run folder is made of seeded noise; ``tests/host/test_docs_measured.py`` measures.
"""

import re
import shutil
import subprocess
import sys
import tomllib

import pytest
import tomli_w

from dbdyno.cli import main
from dbdyno.cli.plan import plan_as_text
from dbdyno.plan.plan import make_plan
from dbdyno.run.preflight import unmet_needs
from dbdyno.simulation.options import SweepRequest, points_of
from dbdyno.simulation.sweep import simulated
from dbdyno.study.load import load_study
from scripts.sentences.collect import sentences
from tests.crash_runs import with_cuts
from tests.documents import LANGUAGES, LOAD_VERBS, PAGES, ROOT, TOOLS, blocks, merged, understood, unknown_words
from tests.run_folders import kept_run
from tests.unit.conftest import STUDY
from tests.unit.report.conftest import build, series_of

EVERY = [block for page in PAGES for block in blocks(page)]
MEASURES = {
    "quick",
    "run",
    "aa",
    "watch",
    "trace record",
    "crash keep",
    "crash examine",
    "restore",
    "servers add",
    "servers remove",
    "kernels add",
    "kernels remove",
    "completion",
    "hosts up",
    "hosts status",
    "hosts down",
}  # or changes the host
HOST_CANNOT = "this host can't run the study as it is; see above"  # a plan all the same
WHOLE = {**tomllib.loads(STUDY), "design": {"blocks": 8}}  # what a part of a study is put into
TRACE = "8,0 0 1 0.000000000 7 Q R 8 + 8 [mariadbd]\n8,0 0 2 0.000500000 0 C R 8 + 8 [0]\n"
WORDS = {
    "STUDY": ["study.toml"],
    "TRACE": ["sda.blkparse"],
    "DIR": ["runs/kept"],
    "DIR...": ["runs/kept", "runs/other"],
    "BEFORE": ["runs/kept"],
    "AFTER": ["runs/other"],
    "CRASH": ["runs/crash"],
}


def pages_with(*languages):
    found = [page for page in PAGES if any(block.language in languages for block in blocks(page))]
    return pytest.mark.parametrize("page", found, ids=lambda page: str(page.relative_to(ROOT)))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    run = build(blocks=6)
    return kept_run(tmp_path_factory.mktemp("kept") / "run", run, series_of(run, samples=20))


@pytest.fixture
def desk(tmp_path, monkeypatch, state, kept):  # noqa: ARG001  (the state folder is not this host's)
    """The reader's folder: the repository's own studies, a study, two runs."""
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    (tmp_path / "sda.blkparse").write_text(TRACE, encoding="utf-8")
    for name in ("studies", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("kept", "other"):
        shutil.copytree(kept, tmp_path / "runs" / name)
    kept_run(tmp_path / "runs" / "crash", with_cuts(build(blocks=6)), {})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_block_says_what_it_is_and_why_it_is_not_run():
    assert [f"{one.page.name}:{one.line}: {one.language}" for one in EVERY if one.language not in LANGUAGES] == []
    indented = re.compile(r"(?<=\n\n) {4}\S.*")
    plain = {page: re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL) for page in PAGES}
    assert [f"{page.name}: {found[0]}" for page in PAGES for found in indented.finditer(plain[page])] == []
    skipped = [one for one in EVERY if one.not_run]
    assert [f"{one.page.name}:{one.line}" for one in skipped if len(one.not_run) < 12 or one.language == "text"] == []
    assert len(skipped) <= sum(one.language != "text" for one in EVERY) / 3


def understood_load(path):
    """A server's load of ``dbdyno simulate``: every combination is simulated for a moment."""
    command = SweepRequest(files=(path,), device="ssd-sata", kernel="3.10", seconds=0.1)
    _, points = points_of(command, lambda *_: None)
    assert all(found.outcome["counts"] for _, found in simulated(points, None, lambda _: None))


@pages_with("toml")
def test_every_study_is_planned(page, desk):
    """A whole study as it stands; a part of one put into a small study."""
    for place, block in enumerate(one for one in blocks(page) if one.language == "toml" and not one.not_run):
        parts = tomllib.loads(block.text)
        whole = "study" in parts
        if {"ingest", "commits"} & set(parts):
            (desk / block.file).write_text(block.text, encoding="utf-8")
            understood_load(desk / block.file)
            continue
        text = block.text if whole else tomli_w.dumps(merged(WHOLE, parts))
        file = desk / (block.file or f"study-{place}.toml")
        file.write_text(text, encoding="utf-8")
        plan = make_plan(load_study(file))
        assert plan_as_text(plan, []), f"{page.name}:{block.line}"
        if whole:
            assert list(plan.warnings()) == [], f"{page.name}:{block.line}"


@pages_with("sql")
def test_every_script_is_understood_by_the_load_generator(page, desk):
    for place, block in enumerate(one for one in blocks(page) if one.language == "sql" and not one.not_run):
        (desk / f"script-{place}.sql").write_text(block.text, encoding="utf-8")
        study = tomllib.loads(STUDY) | {"workload": {"kind": "script", "file": f"script-{place}.sql", "events": 100}}
        (desk / "script.toml").write_text(tomli_w.dumps(study), encoding="utf-8")
        lacking = unmet_needs(make_plan(load_study(desk / "script.toml")), frozenset())
        said = [one.detail for one in lacking if one.name == "load generator"]
        assert said == [], f"{page.name}:{block.line}"


@pages_with("python")
def test_every_snippet_runs(page, desk, kept):
    names = {}
    for block in blocks(page):
        if block.language == "python" and not block.not_run:
            for folder in re.findall(r'open_run\("([^"]+)"\)', block.text):
                if not (desk / folder).exists():
                    shutil.copytree(kept, desk / folder)
            exec(compile(block.text, f"{page.name}:{block.line}", "exec"), names)


def typed(words):
    """The words of a command with a reader's own names in the place of those in capitals."""
    return [part for word in words for part in WORDS.get(word, [word])]


MAKES = {"import", "atlas"}  # the folder that they name, here as there


def do(argv, desk, kept, monkeypatch, capsys):
    """Run a command of dbdyno's that measures nothing; one that measures leaves a run folder behind."""
    understood(argv)
    assert unknown_words(argv) == []
    grouped = {"servers", "kernels", "disk", "images", "trace", "crash", "hosts"}
    verb = " ".join(argv[:2]) if argv[0] in grouped else argv[0]
    if "--into" in argv and verb not in MAKES and not (into := desk / argv[argv.index("--into") + 1]).exists():
        shutil.copytree(kept, into)
    measures = verb in MEASURES or (verb in {"try", "suite"} and "--plan" not in argv)
    measures = measures or (verb == "doctor" and "--quick" not in argv)
    if measures or (argv[0] == "disk" and verb not in {"disk models", "disk list"}):
        return
    if argv[0] in LOAD_VERBS:
        if "--help" in argv:
            subprocess.run([sys.executable, "-m", "dbdyno.cli.main", *argv], check=True, capture_output=True)
        return
    monkeypatch.setattr(sys, "argv", ["dbdyno", *argv])
    with pytest.raises(SystemExit) as ended:
        main.main()
    said = capsys.readouterr().err
    assert ended.value.code == 0 or HOST_CANNOT in said, f"{' '.join(argv)}: {said}"


INLINE = re.compile(r"`(?:sudo )?(?:\.venv/bin/)?(dbdyno [^`]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_in_a_sentence_has_a_known_name_and_known_flags(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    wrong = {found: unknown_words(found.replace("\\|", "|").split()[1:]) for found in INLINE.findall(text)}
    assert {found: words for found, words in wrong.items() if words} == {}


def test_a_command_or_flag_that_there_is_not_is_named():
    assert unknown_words(["rum", "study.toml"]) == ["rum"]
    assert unknown_words(["disk", "atach", "hdd-7200"]) == ["atach"]
    assert unknown_words(["run", "study.toml", "--intoo", "runs/x"]) == ["--intoo"]
    assert unknown_words(["oltp", "read_write", "--thread=16", "--threads=16"]) == ["--thread"]


TROUBLE = ROOT / "docs/troubleshooting.md"
SAID = [" ".join(one.text.split()) for one in sentences(ROOT)]


def is_said(heading):
    """Whether some sentence of the program has these words, with any values in the place of ``...``."""
    parts = [re.escape(part.strip()) for part in heading.split("...")]
    return any(re.search(".*".join(parts), one) for one in SAID)


@pytest.mark.parametrize("heading", re.findall(r"^### (.*)$", TROUBLE.read_text(encoding="utf-8"), re.MULTILINE))
def test_what_is_quoted_as_dbdyno_s_words_is_said_by_it(heading):
    assert is_said(heading)


def test_words_that_nobody_says_are_found_out():
    assert not is_said("...; interference in ...: stop the music")


@pages_with("sh", "console")
def test_every_command_is_one(page, desk, kept, monkeypatch, capsys):
    """In the order of the page, on the studies that the page gives by name."""
    for block in blocks(page):
        if block.language in {"toml", "sql"} and block.file:
            (desk / block.file).write_text(block.text, encoding="utf-8")
        if block.language not in {"sh", "console"} or block.not_run:
            continue
        for words in block.commands:
            assert words[0] in {"dbdyno", *TOOLS}, f"{page.name}:{block.line}: who is to run {words[0]}?"
            if words[0] == "dbdyno":
                do(typed(words[1:]), desk, kept, monkeypatch, capsys)
