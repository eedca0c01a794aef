"""What every section of a study file is made of."""

import re
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from dbdyno.model.metrics import SECONDARY

Setting = StrictBool | StrictInt | StrictFloat | StrictStr


class Section(BaseModel):
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


class WorkloadSection(Section):
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
