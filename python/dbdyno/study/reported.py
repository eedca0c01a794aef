"""``[[reported]]``: a table that somebody published, to stand beside what is measured; schema only."""

from typing import Annotated, Literal

from pydantic import Field, StrictFloat, StrictInt

from dbdyno.store.reported import REPORTED_METRICS, Direction
from dbdyno.study.section import Line, Section, Setting

Figure = Annotated[StrictInt | StrictFloat, Field(gt=0)]


class RowSection(Section):
    """One figure: of which treatment, what its author called the level, and its value."""

    levels: dict[str, Setting]  # factors and fields of the study -> level
    as_: Annotated[Line, Field(alias="as")] = ""
    value: Figure
    min: Figure | None = None
    max: Figure | None = None


class ClaimSection(Section):
    """A sentence of the author's; with ``level`` and ``baseline`` it is held against what is measured."""

    text: Line
    level: dict[str, Setting] | None = None
    baseline: dict[str, Setting] | None = None
    direction: Direction | None = None
    times_min: Figure | None = None  # how many times as fast the level is said to be, at least
    times_max: Figure | None = None


class ReportedSection(Section):
    """A published table and what its author concluded."""

    source: Line
    setup: Line = ""
    metric: Literal[tuple(REPORTED_METRICS)] | None = None  # type: ignore[valid-type]  # None: the study's own
    unit: Line = ""
    rows: list[RowSection] = Field(default_factory=list)
    claims: list[ClaimSection] = Field(default_factory=list)
    differs_because: Line = ""  # why figures here are others, as far as the study's author knows
