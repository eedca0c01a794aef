"""``[[reported]]``: a published table, to stand beside what is measured; schema only."""

from typing import Annotated, Literal

from pydantic import Field, StrictFloat, StrictInt

from dbdyno.model.metrics import REPORTED_METRICS
from dbdyno.store.reported import Direction
from dbdyno.study.section import Line, Section, Setting

Figure = Annotated[StrictInt | StrictFloat, Field(gt=0)]


class RowSection(Section):
    """One figure: of which treatment, what its author called it, and its value."""

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
    """A sentence of the author's; with ``treatment`` and ``baseline`` it is held against what is measured."""

    text: Line
    """The sentence. With this alone it is quoted."""
    treatment: dict[str, Setting] | None = None
    """Which treatment it is about, or of which of several pairs alike in all that neither of the two names."""
    baseline: dict[str, Setting] | None = None
    """What that is compared with."""
    direction: Direction | None = None
    """What the treatment is said to be."""
    times_min: Figure | None = None
    """How many times as fast the treatment is said to be, at least."""
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
