"""A study file as TOML, read within bounds; what all its sections are made of, and what every load says."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from dbdyno._native import toml_lines
from dbdyno.errors import UserError
from dbdyno.model.metrics import SECONDARY
from dbdyno.store.documents import toml_document
from dbdyno.system.files import near_file, read_text

MAX_DEPTH = 16  # of tables and lists in each other; a study needs 6
MAX_ENTRIES = 1000  # of one table or list
_DIGITS = re.compile(r"[0-9][0-9_]{99,}")
_LINE_OF_ERROR = re.compile(r" ?\((?:TOML parse error )?at line (\d+), column (\d+)\)$")
_BARE_TEXT = re.compile(r"(\s*[^=#]*=\s*)([^\W\d][^\s\"'\[\]{}#,]*|/[^\s\"'#,]*)\s*(?:#.*)?")  # device = here
_YAML = re.compile(r"\s*(?:- )?([A-Za-z_][\w-]*)\s*:(?: .*)?")  # device: here


def read_document(path: Path) -> tuple[str, dict[str, Any], dict[str, int]]:
    """The text of a study file, what it says, and the line of every key. Raises ``UserError``."""
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text; save it as UTF-8"
        meant = near_file(path) if isinstance(error, FileNotFoundError) else ""
        raise UserError(f"{path}: can't be read: {reason}{meant}") from None
    try:
        raw = toml_document(text)
    except tomllib.TOMLDecodeError as error:
        raise not_toml(path, text, str(error)) from None
    except RecursionError:
        raise UserError(f"{path}: not valid TOML: it is nested too deep") from None
    except ValueError:  # of Python itself: a whole number of more digits than it takes
        number = _DIGITS.search(text)
        line = text.count("\n", 0, number.start()) + 1 if number else 1
        digits = len(number[0]) if number else "too many"
        most = sys.get_int_max_str_digits()
        raise UserError(f"{path}:{line}: a number has {digits} digits; at most {most} are read") from None
    for name, value in raw.items():
        if depth_of(value) >= MAX_DEPTH:
            raise UserError(f"{path}: {name[:60]!r} is nested too deep; at most {MAX_DEPTH} levels are read")
    try:
        lines = toml_lines(text)
    except ValueError as error:  # what tomllib lets pass, such as a number that TOML has no room for
        place, *_, reason = str(error).strip().splitlines()
        raise not_toml(path, text, f"{reason} ({place})") from None
    for where, entries in _collections(raw, ()):
        if len(entries) > MAX_ENTRIES:
            line = next((lines[key] for n in range(len(where), 0, -1) if (key := ".".join(where[:n])) in lines), 1)
            field = ".".join(where) or "the file"
            raise UserError(f"{path}:{line}: {field[:60]}: has {len(entries)} entries; at most {MAX_ENTRIES} are read")
    return text, raw, lines


def not_toml(path: Path, text: str, reason: str) -> UserError:
    """The error of a text that is no TOML, at its line, with what was likely meant there."""
    place = _LINE_OF_ERROR.search(reason)
    lines = text.splitlines()
    if place is None or not 1 <= (number := int(place[1])) <= len(lines):
        return UserError(f"{path}: not valid TOML: {reason}")
    said = f"{reason[: place.start()]} at column {place[2]}"
    return UserError(f"{path}:{number}: not valid TOML: {said}{_meant(lines[number - 1][:200])}")


def _meant(line: str) -> str:
    if yaml := _YAML.fullmatch(line):
        return f"; a field is written {yaml[1]} = ..."
    if bare := _BARE_TEXT.fullmatch(line):
        return f'; text stands in quotes: {bare[1].strip()} "{bare[2]}"'
    if not re.split("[=#]", line, maxsplit=1)[0].isascii():
        return "; a name with other than A-Z, a-z, 0-9, - and _ stands in quotes"
    return ""


def depth_of(value: object) -> int:
    """How deep tables and lists stand in each other; counted without recursion, and no further than need be."""
    depth, level = 0, [value]
    while depth < MAX_DEPTH and (level := [member for member in level if isinstance(member, dict | list)]):
        level = [
            member
            for collection in level
            for member in (collection.values() if isinstance(collection, dict) else collection)
        ]
        depth += 1
    return depth


def _collections(value: object, where: tuple[str, ...]) -> "list[tuple[tuple[str, ...], dict[str, Any] | list[Any]]]":
    if not isinstance(value, dict | list):
        return []
    items = value.items() if isinstance(value, dict) else ((str(place), member) for place, member in enumerate(value))
    return [
        (where, value),
        *(collection for name, member in items for collection in _collections(member, (*where, name))),
    ]


# What every section of a study file is made of.


Setting = StrictBool | StrictInt | StrictFloat | StrictStr


class FileSection(BaseModel):
    """A section of the study file: unknown keys are errors, values are not bent into other types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)


def _one_line(text: str) -> str:
    if not text.strip() or any(ord(char) < ord(" ") for char in text):
        raise ValueError("must be one line of text")
    return text.strip()


def matching(pattern: str, otherwise: str) -> AfterValidator:
    """Return what refuses a text that is not of a pattern, for the reason given."""

    def checked(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(otherwise)
        return text

    return AfterValidator(checked)


Line = Annotated[str, AfterValidator(_one_line)]
HostName = Annotated[str, matching(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}", "must be letters, digits and hyphens, at most 40")]
Identifier = Annotated[
    str, matching(r"[A-Za-z][A-Za-z0-9_]*", "must be a plain name of letters, digits and underscores")
]


# What every kind of load says of itself in ``[workload]``.


Count = Annotated[StrictInt, Field(ge=1)]
Some = Annotated[StrictInt, Field(ge=0, le=100_000)]


class WorkloadSection(FileSection):
    """What every kind has."""

    AMOUNT: ClassVar[str] = ""  # the field that bounds a run by an amount, if there is one
    DATA: ClassVar[frozenset[str]] = frozenset()  # the fields that shape the prepared data; the others shape the load
    METRIC: ClassVar[str] = "queries_per_second"  # what verdicts are about unless the study says
    SECONDARY: ClassVar[tuple[str, ...]] = SECONDARY  # what is looked at beside it unless the study says
    REPORTS: ClassVar[frozenset[str] | None] = None  # all metrics that there can be of it; None: those of dbdyno-load
    SERVER: ClassVar[Literal["needed", "either", "none"]] = "needed"
    ONLY_READ: ClassVar[tuple[str, ...]] = ()  # the values of ``load`` that leave the data as they were
    ON_HOST: ClassVar[bool] = True  # whether a stack of a host takes it; else simulated ones alone
    FILES: ClassVar[bool] = False  # whether it works on files of its own, in a folder on the measured filesystem

    kind: str
    """Which load; see [workloads.md](workloads.md). It can't be a factor."""

    @classmethod
    def named(cls) -> str:
        """What a study calls the kind."""
        return str(get_args(cls.model_fields["kind"].annotation)[0])

    @property
    def metric(self) -> str:
        """What verdicts are about unless the study says."""
        return self.METRIC

    @property
    def connections(self) -> int:
        """How many it may open to a server."""
        return int(getattr(self, "clients", 1))

    def data(self) -> dict[str, Any]:
        """What the prepared data depends on, as values that JSON holds."""
        return self.model_dump(include={"kind", *self.DATA})

    @property
    def data_bytes(self) -> int:
        """What its data take at least, as far as the study shows."""
        return 0

    def own_files(self) -> dict[str, str]:
        """The user's own files, by field."""
        return {}

    def secret_files(self) -> dict[str, str]:
        """The user's own files, by field, of which nothing but a hash may be kept."""
        return {}

    def variables(self) -> dict[str, str]:
        """Variables of the environment that the user's own files hold, with their values."""
        return {}

    @property
    def only_reads(self) -> bool:
        """Whether a run leaves the data as it was."""
        return getattr(self, "load", None) in self.ONLY_READ

    @property
    def seconds_bound(self) -> float | None:
        """Measured seconds, where time bounds a run."""
        return getattr(self, "duration", None)

    @property
    def seconds_before(self) -> float:
        """Seconds of the same load before measuring."""
        return float(getattr(self, "warmup", 0.0))
