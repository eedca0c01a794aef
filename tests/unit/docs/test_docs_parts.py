"""Every layer, filesystem, model, drive, workload and probe has a section of its own that says what it cannot do."""

import importlib
import inspect
import re
from functools import cache

import pytest

from dbdyno._native import device_models
from dbdyno.filesystems import KINDS as FILESYSTEMS
from dbdyno.probe.sampler import ProbeSource
from dbdyno.study.workloads import KINDS
from scripts.docs import ROOT
from scripts.docs.drives import MODELS, figures, model_comment

DOCS = ROOT / "docs"
CANNOT = re.compile(r"\bcannot\b", re.IGNORECASE)


@cache
def sections(page):
    """Each heading of a page, without its marks, with all that stands below it up to the next of its rank."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = {}
    for head in re.finditer(r"^(#+) (.*)$", text, re.MULTILINE):
        following = re.compile(rf"^#{{1,{len(head[1])}}} ", re.MULTILINE).search(text, head.end())
        found[head[2].replace("`", "")] = text[head.end() : following.start() if following else None]
    return found


def modules(folder):
    """The modules of a package, imported."""
    package = ROOT / "python/dbdyno" / folder
    name = folder.replace("/", ".")
    return [importlib.import_module(f"dbdyno.{name}.{path.stem}") for path in sorted(package.glob("*.py"))]


def layers():
    """File and name of each layer: what has a name and can be raised."""
    for module in modules("stack/layers"):
        for _, one in inspect.getmembers(module, inspect.isclass):
            if one.__module__ == module.__name__ and hasattr(one, "raised") and isinstance(vars(one).get("name"), str):
                yield f"{module.__name__.rpartition('.')[2]}.py", one.name


LAYERS = sorted(set(layers()))
COSTS_AS = {"foreign": "interference"}  # the name in a report's list of costs -> the section
PROBES = sorted(
    COSTS_AS.get(one.name, one.name)
    for module in modules("probe")
    for _, one in inspect.getmembers(module, inspect.isclass)
    if issubclass(one, ProbeSource) and hasattr(one, "name") and one.__module__ == module.__name__
)


def test_the_parts_are_found():
    assert {"device", "queue", "filesystem", "data", "keep", "page_cache", "memory", "server"} <= {n for _, n in LAYERS}
    assert len(PROBES) >= 8


@pytest.mark.parametrize(("file", "name"), LAYERS)
def test_every_layer(file, name):
    said = sections("layers.md")
    place = "data" if name == "keep" else name  # one half each of keeping prepared data
    assert CANNOT.search(said[place])
    assert f"`{file}`" in said["Layers"]


@pytest.mark.parametrize("name", FILESYSTEMS)
def test_every_filesystem(name):
    assert CANNOT.search(sections("layers.md")[name])


@pytest.mark.parametrize("drive", device_models(), ids=lambda drive: drive["name"])
def test_every_drive_and_its_model(drive):
    said = sections("models.md")
    assert drive["title"] in said[drive["name"]]
    assert CANNOT.search(said[f"{MODELS[drive['kind']]}: {drive['kind']}"])
    text = (ROOT / f"crates/dbdyno-device/drives/{drive['name']}.toml").read_text(encoding="utf-8")
    assert len(list(figures(text))) == len(re.findall(r"^(?!title)\w+\s*=", text, re.MULTILINE)) > 0


def test_every_model_says_what_it_cannot():
    assert {drive["kind"] for drive in device_models()} == set(MODELS)
    assert all(len(cannot) > 20 for _, cannot in map(model_comment, MODELS))


@pytest.mark.parametrize("kind", KINDS)
def test_every_workload(kind):
    """Ours in workloads.md, other people's programs in tools.md."""
    pages = [page for page in ("workloads.md", "tools.md") if (DOCS / page).exists()]
    assert any(CANNOT.search(sections(page).get(kind, "")) for page in pages)


@pytest.mark.parametrize("name", PROBES)
def test_every_probe(name):
    assert CANNOT.search(sections("probes.md")[name])


def test_figures_keep_where_they_are_from():
    head = '# about\ntitle = "x"\n'
    text = head + "[ssd]\nnumber = 1_000_000  # data sheet\nother = [1.5, 2]  # same\n[ssd.ftl]\non = true\n"
    assert list(figures(text)) == [
        ("ssd.number", "1,000,000", "data sheet"),
        ("ssd.other", "1.5, 2", "data sheet"),
        ("ssd.ftl.on", "true", ""),
    ]
