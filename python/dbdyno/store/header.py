"""What a run begins with, ``run.toml``: one type, written when a run is begun and read ever after."""

import hashlib
import math
import tomllib
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dbdyno.errors import UserError
from dbdyno.model.design import BLOCKS_MAX, TREATMENTS_MAX, Design
from dbdyno.store.documents import (
    VALUES_MAX,
    document_of,
    see_that_it_is_flat,
    see_that_it_is_moderate,
    toml_document,
    value_of,
)
from dbdyno.store.parts import damaged, why_wrong
from dbdyno.store.reported import Prices, ReportedTable

RUN = "run.toml"
FORMAT = 1
FACTORS_MAX = 64
LABEL_CHARACTERS_MAX = 4096  # of a treatment's label: its levels together
TEXT_CHARACTERS_MAX = 100_000  # of a title, a question, what is expected
_METRICS_MAX = 1000
_IN_RUN = ("title", "question", "expect", "result", "scale", "study_file", "study_sha256", "imported")
# Parts of the design that are tables of their own; the others stand in ``[run]``.
_TABLES = {
    "treatments": "treatment",
    "comparisons": "comparison",
    "factors": "factor",
    "aa": "aa",
    "control": "control",
    "fleet": "fleet",
    "fail_if": "fail_if",
}
# What fields of the design are called in ``[run]``, where run folders have another name.
_KEYS = {"interference": "disturbed", "secondary_metrics": "screened"}


@dataclass(frozen=True)
class Header:
    """What was planned. ``study`` has the study's sections as it gave them; the user's own files are path -> text."""

    title: str
    question: str
    design: Design
    study: dict[str, dict[str, Any]]
    versions: dict[str, str] = field(default_factory=dict)
    study_sha256: str = ""  # the identity of what is measured
    study_file: str = "study.toml"  # its name
    expect: str = ""
    result: str = ""
    scale: str = ""
    imported: bool = False  # measured elsewhere, and shared without names
    reported: list[ReportedTable] = field(default_factory=list)
    cost: Prices | None = None
    awake: list[str] = field(default_factory=list)  # treatments for which processors are kept awake
    drive_files: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)
    file_hashes: dict[str, str] = field(default_factory=dict)  # of files that are not kept: path -> SHA-256
    variables: dict[str, str] = field(default_factory=dict)  # of the environment, that stand in the user's own files

    def to_toml(self) -> bytes:
        """The content of ``run.toml``."""
        import tomli_w

        rest = document_of(self)
        design = rest.pop("design")
        tables = {table: design.pop(name) for name, table in _TABLES.items() if name in design}
        run = {name: rest.pop(name) for name in _IN_RUN} | {
            _KEYS.get(name, name): value for name, value in design.items()
        }
        return tomli_w.dumps({"format": FORMAT, "run": run, **tables, **rest}).encode()

    def study_without_paths(self) -> dict[str, Any]:
        """The study, the user's own files by name and, as ``files``, by the SHA-256 of their content."""
        texts = {**self.drive_files, **self.scripts}
        own = {**texts, **self.file_hashes}

        def named(value: Any) -> Any:  # noqa: ANN401  (whatever TOML can hold)
            if isinstance(value, dict):
                return {name: named(member) for name, member in value.items()}
            if isinstance(value, list):
                return [named(member) for member in value]
            for path in own if isinstance(value, str) else ():
                value = value.replace(path, Path(path).name)
            return value

        files = {Path(path).name: hashlib.sha256(text.encode()).hexdigest() for path, text in texts.items()}
        files |= {Path(path).name: sha256 for path, sha256 in self.file_hashes.items()}
        more = {"files": files, "variables": self.variables}
        return {**named(self.study), **{name: table for name, table in more.items() if table}}

    def setup(self) -> str:
        """What all treatments have in common, in the study's own words."""
        factors = {name for treatment in self.design.treatments for name in treatment.levels}
        of_levels = self._of_named_levels()
        parts = []
        for section in ("workload", "stack", "queue", "filesystem", "host"):
            table = dict(self.study.get(section, {}))
            disks = _table(table.pop("disks", {}))
            parts += list(_with_one_value(table | _table(table.pop("iosched", {})), factors | of_levels))
            for name, disk in disks.items():
                parts += [f"disk {name}: {part}" for part in _with_one_value(_table(disk), of_levels)]
        for name, table in _table(self.study.get("beside")).items():
            fields_beside = {field: value for field, value in _table(table).items() if field != "name"}
            parts.append(f"{name} beside it ({', '.join(_with_one_value(fields_beside, ()))})")
        server = dict(self.study.get("server", {}))
        server.pop("option_file", None)  # where it lies is private
        place = _with_one_value(_table(server.pop("place", {})), factors | of_levels)
        replica = _table(server.pop("replica", {}))
        of_replica = _with_one_value(replica | _table(replica.pop("settings", {})), factors | of_levels)
        of_cluster = _with_one_value(_table(server.pop("cluster", {})), factors | of_levels)
        settings = _with_one_value(_table(server.pop("settings", {})) | server, of_levels)
        others = [*(f"place of {part}" for part in place), *(f"replica: {part}" for part in of_replica)]
        others += [f"cluster: {part}" for part in of_cluster]
        return ", ".join([*parts, *settings, *others])

    def _of_named_levels(self) -> set[str]:
        """The names of fields that a named level gives, and so not all treatments have alike."""
        levels = [level for factor in self.design.factors for level in (factor.gives or {}).values()]
        return {field.rpartition(".")[2] for level in levels for field in level}


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _with_one_value(table: Mapping[str, Any], factors: Container[str]) -> Iterator[str]:
    """Fields that don't vary as the study has them: true, not True."""
    for name, value in table.items():
        if name not in factors and not isinstance(value, list):
            # A script is known by its name; where it lay is private.
            shown = Path(str(value)).name if name in {"file", "job", "setup"} else value
            yield f"{name} {str(shown).lower() if isinstance(shown, bool) else shown}"


def header_in(path: Path, content: bytes) -> Header:
    """The header of the run folder ``path``. Raises ``UserError`` where it is of another format or damaged."""
    file = path / RUN
    if not content.strip():
        raise damaged(file, "it is empty")
    try:
        see_that_it_is_moderate(content, VALUES_MAX)
        document = toml_document(content.decode("utf-8"))
        see_that_it_is_flat(document)
    except UnicodeDecodeError:
        raise damaged(file, "it is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        of_toml = isinstance(error, tomllib.TOMLDecodeError)
        raise damaged(file, f"it is not valid TOML: {why}" if of_toml else why) from None
    if document.get("format") != FORMAT:
        raise UserError(f"{path}: run format {document.get('format')!r}; this dbdyno reads format {FORMAT}")
    try:
        return _header_of(document)
    except ValueError as error:
        raise damaged(file, why_wrong(error)) from None


def _header_of(document: Mapping[str, Any]) -> Header:
    run = document.get("run")
    if not isinstance(run, dict):
        raise ValueError("run is not a table" if "run" in document else "run is missing")  # noqa: TRY004
    design = {
        attribute.name: run[key]
        for attribute in fields(Design)
        if (key := _KEYS.get(attribute.name, attribute.name)) in run
    }
    design |= {name: document[table] for name, table in _TABLES.items() if table in document}
    design.setdefault("comparisons", [])
    about = {name: run[name] for name in _IN_RUN if name in run}
    rest = {attribute.name: document[attribute.name] for attribute in fields(Header) if attribute.name in document}
    header = value_of(Header, {**about, **rest, "design": value_of(Design, design, "run")})
    _see_that_it_can_be_planned(header)
    return header


def _see_that_it_can_be_planned(header: Header) -> None:
    """Raise ``ValueError`` where it says of the plan what no study can: figures grow by its powers."""
    design = header.design
    treatments = {treatment.id for treatment in design.tried}
    for name, count, most in (
        ("treatments", len(design.treatments), TREATMENTS_MAX),
        ("blocks", design.blocks, BLOCKS_MAX),
        ("factors", len(design.factors), FACTORS_MAX),
        ("comparisons", len(design.comparisons), TREATMENTS_MAX**2),
        ("secondary metrics", len(design.secondary_metrics), _METRICS_MAX),
        ("characters in a treatment's label", max(map(len, design.labels.values()), default=0), LABEL_CHARACTERS_MAX),
        ("characters", max(len(header.title), len(header.question), len(header.expect)), TEXT_CHARACTERS_MAX),
    ):
        if count > most:
            raise ValueError(f"it has {count} {name}; a study has at most {most}")
    if len(treatments) != len(design.tried):
        raise ValueError("two treatments have the same id")
    if design.treatments and design.baseline not in treatments:
        raise ValueError(f"baseline is {design.baseline[:40]!r}, which is not a treatment")
    for comparison in design.comparisons:
        if strange := {comparison.baseline, comparison.level} - treatments:
            raise ValueError(f"comparison names {min(strange)[:40]!r}, which is not a treatment")
    if not (math.isfinite(design.margin) and 0 <= design.margin <= 1):
        raise ValueError("margin is not a share from 0 to 1")
