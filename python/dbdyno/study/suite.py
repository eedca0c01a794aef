"""``[suite]``: a folder of loads, each a file of SQL, which are the levels of the study's first factor.

What it gives is what a study could say itself: ``[levels]`` with a ``file`` each, ``workload.setup``, and comparisons
in one factor only, which is never the load. So plan, run, analysis and report know nothing of it but the groups, and
which load goes on with the tables of which.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from dbdyno.model.similar import did_you_mean
from dbdyno.study.document import FileSection, Line
from dbdyno.study.levels import LEVELS, NamedLevel
from dbdyno.study.mistakes import Mistake, shown
from dbdyno.study.schema import FACTOR_SECTIONS, DesignSection, TrialSpec
from dbdyno.study.study import BESIDE, VariedField, copied
from dbdyno.system.files import read_text

SUITE, LOAD = "suite", "load"  # the section, and what its factor is called
SETUP = "setup.sql"  # the file of the folder that makes the tables of all loads
KIND = "script"
# A line of a load's file with fields of its own, written as in a table of TOML: `-- load: after = "fill", events = 9`
_FIELDS = re.compile(r"--[ \t]*(load|beside):(.*)")
_OF_ALL = ("kind", "setup", "set")  # loads begin with the same tables
AMOUNT = "events"
_ONE_VALUE = {"clients_from"}  # lists that are no factors
_VARIED = {section.partition(".")[0] for section in FACTOR_SECTIONS}  # sections whose lists are factors


class SuiteSection(FileSection):
    """``[suite]``: many loads over the same treatments; see [suites.md](suites.md)."""

    loads: Line
    """A folder, relative to the study: each file `NAME.sql` in it or one folder below is a [script](script.md) and a
    load called NAME. Folders below it are groups. Its `setup.sql` makes the tables of all.
    """
    only: list[Line] | None = None
    """Patterns of the names of the loads that are run, such as `["point-*", "scan"]`; all if not given. What a load
    goes on from is run, too.
    """
    times: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """How many times as many `events` as the loads' own lines say."""


@dataclass(frozen=True)
class SuiteLoadFile:
    """A load of a suite: its file, and what the file says of the load beside its SQL."""

    path: Path
    after: str = ""  # the load on whose tables it goes on; empty: it begins with what the setup makes
    fields: Mapping[str, Any] = field(default_factory=dict)  # of ``[workload]``
    beside: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # name -> a table of ``[[workload.beside]]``

    @property
    def name(self) -> str:
        """What the load is called."""
        return self.path.stem


@dataclass(frozen=True)
class Suite:
    """The loads of a suite, in the order of their groups and names, but each right after what it goes on from."""

    loads: Sequence[SuiteLoadFile]  # their files relative to the study
    groups: dict[str, str]  # name -> its folder below that of the loads; empty where it is in none
    setup: str | None  # the file that makes the tables

    @property
    def after(self) -> dict[str, str]:
        """Name -> the load on whose tables it goes on, of those that do."""
        return {load.name: load.after for load in self.loads if load.after}

    def applied(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The study with its loads as named levels, the first factor, and with the file that makes their tables."""
        load = raw.get("workload", {})
        levels = {load.name: {"workload": {"file": str(load.path), **load.fields}} for load in self.loads}
        if isinstance(load, dict):
            load = {"kind": KIND, **({"setup": self.setup} if self.setup else {}), **load}
        rest = {name: section for name, section in raw.items() if name not in {SUITE, LEVELS}}
        return {LEVELS: levels, **rest, "workload": load}

    def factor(self, levels: Sequence[NamedLevel], workload: Mapping[str, Any]) -> VariedField:
        """The factor that has the loads as its levels, for a study with this ``[workload]``.

        A level includes what runs beside its load.
        """
        shared = {name: workload[name] for name in ("setup", "set") if name in workload}
        return VariedField(
            name=LOAD,
            path=(LEVELS,),
            levels=tuple(_with_beside(level, load, shared) for level, load in zip(levels, self.loads, strict=True)),
            groups=self.groups,
            after=self.after or None,
        )

    def in_load(self, mistake: Mistake, study: Path) -> Mistake:
        """The mistake where the study has it: of what a load's own file says, its file and line are in the text."""
        load = next((load for load in self.loads if mistake.path[:2] == (LEVELS, load.name)), None)
        if load is None:
            return mistake
        words = ".".join(str(part) for part in mistake.path[2:] if part != "workload")
        text = read_text(study.parent / load.path).splitlines()
        lines = {number: line for number, line in enumerate(text, 1) if _FIELDS.match(line)} or {1: ""}
        line = next((n for n, line in lines.items() if str(mistake.path[-1]) in line), min(lines))
        return Mistake((SUITE, "loads"), f"{load.path}:{line}: {words}: {mistake.text}")


def _with_beside(level: NamedLevel, load: SuiteLoadFile, shared: Mapping[str, Any]) -> NamedLevel:
    """The level of a load, with what runs beside it. A script beside it works on the tables of the judged load."""
    fields: dict[tuple[str, ...], Any] = {
        (BESIDE, name, key): value
        for name, table in load.beside.items()
        for key, value in ({**shared, **table} if table["kind"] == KIND else table).items()
    }
    places: dict[tuple[str, ...], tuple[str, ...]] = {path: (LEVELS, level.name, *path) for path in fields}
    return replace(level, fields={**level.fields, **fields}, places={**level.places, **places})


def read_suite(raw: dict[str, Any], section: SuiteSection, folder: Path, mistakes: list[Mistake]) -> Suite | None:
    """The suite of a study file in ``folder``; None where something is wrong with it."""
    place = folder / section.loads
    found = [path for path in (*sorted(place.glob("*.sql")), *sorted(place.glob("*/*.sql"))) if path.name != SETUP]
    problem = list(_problems(raw, section, place, found))
    loads = [_load_file(path, folder, section.times, problem) for path in found]
    # What only runs beside others is no load itself.
    beside = {os.path.normpath(str(table.get("file"))) for load in loads for table in load.beside.values()}
    loads = [load for load in loads if str(load.path) not in beside]
    problem += [] if problem else _broken_steps(loads)
    only = section.only or ["*"]
    named = {load.name for load in loads if any(fnmatchcase(load.name, pattern) for pattern in only)}
    unused = [pattern for pattern in only if not any(fnmatchcase(load.name, pattern) for load in loads)]
    if unused and not problem:
        names = [load.name for load in loads]
        known = f"there are {', '.join(names)}{did_you_mean(unused[0], names)}"
        problem.append(Mistake((SUITE, "only"), f"names no load: {shown(unused[0])}; {known}"))
    mistakes += problem
    if problem:
        return None
    groups = {path.stem: path.parent.name if path.parent != place else "" for path in found}
    chosen = _in_order(loads, named)
    setup = place / SETUP
    return Suite(
        chosen,
        {load.name: groups[load.name] for load in chosen},
        str(setup.relative_to(folder)) if setup.is_file() else None,
    )


def _in_order(loads: Sequence[SuiteLoadFile], named: set[str]) -> list[SuiteLoadFile]:
    """Those that are named and what they go on from, each right after that."""
    by_name = {load.name: load for load in loads}
    needed = set(named)
    for name in named:
        while name := by_name[name].after:
            needed.add(name)
    following = {load.after: load for load in loads if load.after and load.name in needed}
    ordered = []
    for first in (load for load in loads if load.name in needed and not load.after):
        load: SuiteLoadFile | None = first
        while load:
            ordered.append(load)
            load = following.get(load.name)
    return ordered


def _load_file(path: Path, folder: Path, times: float, problem: list[Mistake]) -> SuiteLoadFile:
    """The load of a file, by its lines of fields; what is wrong with these goes to ``problem``."""
    fields: dict[str, Any] = {}
    beside: dict[str, dict[str, Any]] = {}
    relative = path.relative_to(folder)
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not (given := _FIELDS.match(line)):
            continue
        here = f"{relative}:{number}: {given[1]}"
        try:
            table = tomllib.loads(f"fields = {{{given[2]}}}")["fields"]
        except tomllib.TOMLDecodeError:
            example = 'after = "fill", events = 100' if given[1] == "load" else 'file = "inserts.sql", rate = 100'
            problem.append(Mistake((SUITE, "loads"), f"{here}: can't be read; write fields as in: {example}"))
            continue
        if isinstance(file := table.get("file"), str):
            table["file"] = os.path.normpath(relative.parent / file)
        if given[1] == "load":
            fields |= table
            wrong = next((name for name in _OF_ALL if name in table), "")
        else:
            name = str(table.setdefault("name", Path(str(file)).stem.replace("-", "_")))
            table.setdefault("kind", KIND)
            wrong = "setup" if "setup" in table else ""
            if name in beside:
                problem.append(Mistake((SUITE, "loads"), f"{here}: {shown(name)} runs beside it twice; give it a name"))
            beside[name] = table
        if wrong:
            problem.append(Mistake((SUITE, "loads"), f"{here}: {wrong} is one for all loads of a suite; leave it out"))
    after = fields.pop("after", "")
    if isinstance(events := fields.get(AMOUNT), int) and events > 1:
        fields[AMOUNT] = max(1, round(events * times))
    return SuiteLoadFile(relative, str(after), fields, beside)


def _broken_steps(loads: Sequence[SuiteLoadFile]) -> Iterator[Mistake]:
    """What is wrong with which load goes on from which."""
    by_name = {load.name: load for load in loads}
    followed: dict[str, str] = {}
    for load in loads:
        if not load.after:
            continue
        here = f"{load.path}: after"
        if load.after not in by_name:
            text = f"is {shown(load.after)}, which is no load; there are {', '.join(by_name)}"
            yield Mistake((SUITE, "loads"), f"{here}: {text}{did_you_mean(load.after, by_name)}")
            return
        if other := followed.get(load.after):
            text = f"is {load.after}, and so is that of {other}; one load goes on from each: name the last of them"
            yield Mistake((SUITE, "loads"), f"{here}: {text}")
        followed[load.after] = load.name
        before, steps = load.after, 1
        while before and steps <= len(loads):
            before, steps = by_name[before].after if before in by_name else "", steps + 1
        if steps > len(loads):
            yield Mistake((SUITE, "loads"), f"{here}: leads round to itself; the first step has no after")
            return


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


def step_mistakes(design: DesignSection, specs: Sequence[TrialSpec], *, has_hosts: bool) -> Iterator[Mistake]:
    """What can't be given with loads that go on from others."""
    steps = "with loads that go on from others"
    if design.settle == "trial":
        text = f'can\'t be "trial" {steps}: the baseline before each would change their tables; give a time'
        yield Mistake(("design", "settle"), text)
    if LOAD in design.hard_to_change:
        yield Mistake(("design", "hard_to_change"), f"can't name the loads {steps}, whose order is fixed; leave it out")
    if has_hosts:
        yield Mistake(("hosts",), f"can't be given {steps}; run the suite on each host by itself")
    if any(spec.stack.is_in_machine for spec in specs):
        text = f"names a virtual machine, which boots for each load, and can't be given {steps}; leave it out"
        yield Mistake(("stack", "kernel"), text)


def with_changes(
    raw: dict[str, Any], sections: dict[str, dict[str, Any]], only: Sequence[str], *, replaces_factors: bool
) -> dict[tuple[str, ...], dict[str, Any]]:
    """The sections of a suite's study, by their paths, with others' fields in the place of its own, and ``only``.

    Where these vary something, that ``replaces_factors`` of the study: each of its lists is left out.
    """
    merged = {name: copied(section) for name, section in raw.items() if isinstance(section, dict)}
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


def has_several_levels(sections: Mapping[tuple[str, ...], dict[str, Any]]) -> bool:
    """Whether a field of these sections of a study is a factor: has a list, in a section whose lists are such."""
    fields = (item for path, table in sections.items() if path[0] in {*_VARIED, LEVELS} for item in table.items())
    return any(isinstance(value, list) and name not in _ONE_VALUE for name, value in fields)


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
