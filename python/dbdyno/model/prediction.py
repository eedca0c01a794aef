"""What a recorded load would have done under other treatments, beside what those treatments measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbdyno.model.design import Treatment


@dataclass(frozen=True)
class DeviceFigures:
    """What a device was asked for and how long that took; NaN where it is not known."""

    requests_per_s: float
    await_ms: float  # iostat's: from when a request was in the queue
    latency_ms_mean: float  # from when a process asked for it


@dataclass(frozen=True)
class Predicted:
    """One treatment; ``measured`` is the mean over its trials, None where it has none."""

    treatment: Treatment
    outcome: Mapping[str, Any]  # of the simulated point
    predicted: DeviceFigures
    measured: DeviceFigures | None


@dataclass(frozen=True)
class Prediction:
    """All treatments of a run that can be simulated, and why the others can't."""

    source: Treatment  # whose load was recorded
    trial: str  # in which
    replay: str  # "open" or "closed"
    each: tuple[Predicted, ...]
    refused: Mapping[str, str]  # a treatment's label to what can't be simulated
    remarks: tuple[str, ...]  # what is wrong with the record

    @property
    def of_source(self) -> Predicted | None:
        """The load under its own treatment."""
        return next((predicted for predicted in self.each if predicted.treatment == self.source), None)
