"""``[[reported]]``: a table that somebody published, to stand beside what is measured; schema only."""

from typing import Annotated, Literal

from pydantic import Field, StrictFloat, StrictInt

from dbdyno.store.reported import REPORTED_METRICS, Direction
from dbdyno.study.section import Line, Section, Setting

Figure = Annotated[StrictInt | StrictFloat, Field(gt=0)]


class RowSection(Section):
    """One figure: of which treatment, what its author called the level, and its value."""

    levels: dict[str, Setting]
    """Factors and fields of the study, each with its level, until one treatment is left."""
    as_: Annotated[Line, Field(alias="as")] = ""
    """What the author called it."""
    value: Figure
    """In the metric's unit."""
    min: Figure | None = None
    """Of the author's repetitions."""
    max: Figure | None = None
    """Of the author's repetitions."""


class ClaimSection(Section):
    """A sentence of the author's; with ``level`` and ``baseline`` it is held against what is measured."""

    text: Line
    """The sentence. With this alone it is quoted."""
    level: dict[str, Setting] | None = None
    """Of which treatment it speaks, or of which of several pairs alike in all that neither of the two names."""
    baseline: dict[str, Setting] | None = None
    """What that is compared with."""
    direction: Direction | None = None
    """What the level is said to be."""
    times_min: Figure | None = None
    """How many times as fast the level is said to be, at least."""
    times_max: Figure | None = None
    """The same, at most."""


class ReportedSection(Section):
    """A published table and what its author concluded."""

    source: Line
    """Who published it."""
    setup: Line = ""
    """On what it was measured."""
    metric: Literal[tuple(REPORTED_METRICS)] | None = None  # type: ignore[valid-type]
    """What the figures are; the study's metric if not given."""
    unit: Line = ""
    """As the table has it."""
    rows: list[RowSection] = Field(default_factory=list)
    """Its figures."""
    claims: list[ClaimSection] = Field(default_factory=list)
    """What its author concluded; each is held against what is measured."""
    differs_because: Line = ""
    """Why figures here are others, as far as you know. Printed where something does not agree."""
