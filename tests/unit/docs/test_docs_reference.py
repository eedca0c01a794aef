"""The generated pages are what the code says by now, and every field of a study says what it means."""

import re

import pytest

from dbdyno.study.document import FileSection
from dbdyno.study.load import TOP_LEVEL
from dbdyno.study.schema import MAX_BLOCKS, DesignSection, QueueSection, StackSection
from dbdyno.study.workloads import KINDS
from scripts.docs import ROOT, pages
from scripts.docs.fields import default_words, docstrings, item, own_fields, type_words
from scripts.docs.study_reference import SECTIONS, groups, kinds_fields

MODELS = [*SECTIONS.values(), *groups(), *KINDS.values()]


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_a_generated_page_is_not_stale(path):
    assert path.read_text(encoding="utf-8") == pages()[path], f"stale: write {path.relative_to(ROOT)} by make docs"


def test_every_section_is_in_the_reference():
    apart = {"workload", "version", "scale"}  # a chapter, a line, and what has the fields of the others
    assert {name.split(".")[0] for name in SECTIONS} | apart == set(TOP_LEVEL)
    assert set(KINDS.values()) <= set(MODELS)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_field_says_what_it_means(model):
    """A docstring below the field, in the class that says the field."""
    assert [name for name in own_fields(model) if not docstrings(model).get(name, "").endswith((".", "`"))] == []


@pytest.mark.parametrize("model", KINDS.values(), ids=KINDS)
def test_every_field_of_a_kind_stands_in_a_page(model):
    shared = (ROOT / "docs/study-reference.md").read_text(encoding="utf-8")
    own = "".join((ROOT / f"docs/{page}.md").read_text(encoding="utf-8") for page in ("workloads", "tools"))
    assert kinds_fields(model.named()) in own
    assert [name for name in model.model_fields if f"- `{name}`" not in shared + kinds_fields(model.named())] == []


@pytest.mark.parametrize(
    ("model", "name", "words", "default"),
    [
        (StackSection, "size", "size, at least 64 MiB", "-"),
        (StackSection, "device", "a line", "-"),
        (QueueSection, "nr_requests", "1 or more", "-"),
        (QueueSection, "iosched", "section of `name = number`", "-"),
        (DesignSection, "margin", "percentage, above 0 %, below 100 %", '`"3%"`'),
        (DesignSection, "blocks", f"1 to {MAX_BLOCKS}", "-"),
        (DesignSection, "metric", "a [metric](#metrics)", "-"),
        (DesignSection, "seed", "0 to 2^63 - 1", "-"),
        (KINDS["slap"], "warmup", 'time, `"steady"`', '`"500ms"`'),
        (KINDS["slap"], "warmup_max", "time, at least 6 s", '`"60s"`'),
        (KINDS["smack"], "row_size", "size, 32 B to 65000 B", '`"1KiB"`'),
        (KINDS["smack"], "rand_pareto_h", "number, above 0, below 1", "-"),
        (KINDS["oltp"], "auto_inc", "true, false", "true"),
    ],
)
def test_types_limits_and_defaults_are_those_of_the_schema(model, name, words, default):
    field = model.model_fields[name]
    assert (type_words(field), default_words(field)) == (words, default)


class Bare(FileSection):
    field: int = 1


def test_a_field_without_a_docstring_is_named():
    with pytest.raises(KeyError, match=r"Bare\.field has no docstring below it"):
        item(Bare, "field", Bare.model_fields["field"])


LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(page):
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    lost = []
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        to = (page.parent / target).resolve() if target else page
        if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to)):
            lost.append(f"{target}#{anchor}")
    assert lost == []


def test_no_page_was_left_half_merged():
    half = re.compile(r"^(<{7} |={7}$|>{7} )", re.MULTILINE)
    assert [page.name for page in PAGES if half.search(page.read_text(encoding="utf-8"))] == []


NAMED = re.compile(
    r"`((?:[\w-]+/)*[\w-]+\.(?:py|pyi|rs))`|`((?:tests|python|crates|studies|benches|scripts|docs|fuzz)/[\w./-]+)`"
)
FOLDERS = ("tests", "python", "crates", "studies", "benches", "scripts", "docs", "fuzz")
OURS = [path.relative_to(ROOT).as_posix() for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
ENDS = {"/".join(path.split("/")[from_:]) for path in OURS for from_ in range(path.count("/") + 1)}
TO_BE_MADE = {"fuzz/artifacts/"}  # by a reader who does what the page says


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_is_named_is_there(page):
    """A page may leave out the folders before a file where its text says them; ``NAME`` is the reader's own."""
    named = {file or place for file, place in NAMED.findall(page.read_text(encoding="utf-8"))}
    named = {one for one in named if "NAME" not in one} - TO_BE_MADE
    assert sorted(one for one in named if one.rstrip("/") not in ENDS) == []
