"""``[suite]``: a folder of loads, each a file of SQL, which are the levels of the study's first factor.

What it gives is what a study could say itself: ``[levels]`` with a ``file`` each, ``workload.setup``, and comparisons
in one factor only, which is never the load. So plan, run, analysis and report know nothing of it but the groups.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from dbdyno.study.document import Line, Section
from dbdyno.study.levels import LEVELS, NamedLevel
from dbdyno.study.mistakes import Mistake, did_you_mean, shown
from dbdyno.study.schema import FACTOR_SECTIONS, DesignSection
from dbdyno.study.study import VariedField

SUITE, LOAD = "suite", "load"  # the section, and what its factor is called
SETUP = "setup.sql"  # the file of the folder that makes the tables of all loads
KIND = "script"
_ONE_VALUE = {"clients_from"}  # lists that are no factors
_VARIED = {section.partition(".")[0] for section in FACTOR_SECTIONS}  # sections whose lists are factors


class SuiteSection(Section):
    """``[suite]``: many loads over the same treatments; see [suites.md](suites.md)."""

    loads: Line
    """A folder, relative to the study: each file `NAME.sql` in it or one folder below is a [script](script.md) and a
    load called NAME. Folders below it are groups. Its `setup.sql` makes the tables of all.
    """
    only: list[Line] | None = None
    """Patterns of the names of the loads that are run, such as `["point-*", "scan"]`; all if not given."""


@dataclass(frozen=True)
class Suite:
    """The loads of a suite, in the order of their groups and names: what each gives, and its group."""

    files: dict[str, str]  # name -> its file, relative to the study
    groups: dict[str, str]  # name -> its folder below that of the loads; empty where it is in none
    setup: str | None  # the file that makes the tables

    def applied(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The study with its loads as named levels, the first factor, and with the file that makes their tables."""
        load = raw.get("workload")
        levels = {name: {"workload": {"file": file}} for name, file in self.files.items()}
        if isinstance(load, dict):
            load = {"kind": KIND, **({"setup": self.setup} if self.setup else {}), **load}
        rest = {name: section for name, section in raw.items() if name not in {SUITE, LEVELS}}
        return {LEVELS: levels, **rest, **({"workload": load} if load is not None else {})}

    def factor(self, levels: Sequence[NamedLevel]) -> VariedField:
        """The factor whose levels they are."""
        return VariedField(name=LOAD, path=(LEVELS,), levels=tuple(levels), groups=self.groups)


def read_suite(raw: dict[str, Any], section: SuiteSection, folder: Path, mistakes: list[Mistake]) -> Suite | None:
    """The suite of a study file in ``folder``; None where something is wrong with it."""
    place = folder / section.loads
    found = [path for path in (*sorted(place.glob("*.sql")), *sorted(place.glob("*/*.sql"))) if path.name != SETUP]
    problem = list(_problems(raw, section, place, found))
    only = section.only or ["*"]
    chosen = [path for path in found if any(fnmatchcase(path.stem, pattern) for pattern in only)]
    unused = [pattern for pattern in only if not any(fnmatchcase(path.stem, pattern) for path in found)]
    if unused and not problem:
        names = [path.stem for path in found]
        text = f"names no load: {shown(unused[0])}{did_you_mean(unused[0], names)}"
        problem.append(Mistake((SUITE, "only"), f"{text}; there are {', '.join(names)}"))
    mistakes += problem
    if problem:
        return None
    groups = {path.stem: path.parent.name if path.parent != place else "" for path in chosen}
    files = {path.stem: str(path.relative_to(folder)) for path in chosen}
    setup = place / SETUP
    return Suite(files, groups, str(setup.relative_to(folder)) if setup.is_file() else None)


def _problems(raw: dict[str, Any], section: SuiteSection, place: Path, found: list[Path]) -> Iterator[Mistake]:
    if not found:
        text = f"is {shown(section.loads)}, in which there is no load: give a folder with files NAME.sql"
        yield Mistake((SUITE, "loads"), f"{text} ({place.resolve()})")
    names = [path.stem for path in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        yield Mistake((SUITE, "loads"), f"has two loads called {shown(twice)}; rename one of the files")
    if LEVELS in raw:
        yield Mistake((LEVELS,), "can't be given with [suite], whose loads are named levels; give a list in a section")
    load = raw.get("workload")
    if isinstance(load, dict) and load.get("kind", KIND) != KIND:
        text = f"is {shown(load['kind'])}, but the loads of a suite are files of SQL; leave it out"
        yield Mistake(("workload", "kind"), text)
    if isinstance(load, dict) and "file" in load:
        yield Mistake(("workload", "file"), "can't be given with [suite], which names the files; leave it out")


def compared_within_loads(
    design: DesignSection, factors: Sequence[VariedField], mistakes: list[Mistake]
) -> DesignSection:
    """The design of a suite: each load on its own, in one other factor at a time."""
    others = [factor.name for factor in factors if factor.name != LOAD]
    if "compare" in design.model_fields_set and design.compare != "one-factor":
        text = "can't be given with [suite]: each load is compared with itself, in one factor at a time"
        mistakes.append(Mistake(("design", "compare"), text))
    if LOAD in design.compare_factors:
        mistakes.append(Mistake(("design", "compare_factors"), "names the loads, which are not compared; leave it out"))
    if not others:
        text = "needs something to compare its loads by: give a list, such as server in [stack]"
        mistakes.append(Mistake((SUITE,), text))
    return design.model_copy(
        update={"compare": "one-factor", "compare_factors": list(design.compare_factors) or others}
    )


def with_changes(
    raw: dict[str, Any], sections: dict[str, dict[str, Any]], only: Sequence[str], *, replaces_factors: bool
) -> dict[tuple[str, ...], dict[str, Any]]:
    """The sections of a suite's study, by their paths, with others' fields in the place of its own, and ``only``.

    Where these vary something, that ``replaces_factors`` of the study: each of its lists is left out.
    """
    merged = {name: _copied(section) for name, section in raw.items() if isinstance(section, dict)}
    if replaces_factors:
        merged = {name: _without_lists(section) if name in _VARIED else section for name, section in merged.items()}
    for name, fields in sections.items():
        table = merged
        for part in name.split("."):
            table = table.setdefault(part, {})
        table.update(fields)
    if only:
        merged[SUITE] = {**merged[SUITE], "only": list(only)}
    return dict(_by_path(merged))


def _copied(table: dict[str, Any]) -> dict[str, Any]:
    return {name: _copied(value) if isinstance(value, dict) else value for name, value in table.items()}


def _without_lists(table: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in table.items() if not isinstance(value, list) or name in _ONE_VALUE}
    return {name: _without_lists(value) if isinstance(value, dict) else value for name, value in kept.items()}


def _by_path(tables: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    for name, table in tables.items():
        fields = {field: value for field, value in table.items() if not isinstance(value, dict) or field == "baseline"}
        inner = {field: value for field, value in table.items() if field not in fields}
        if fields or not inner:
            yield (*path, name), fields
        yield from _by_path(inner, (*path, name))
