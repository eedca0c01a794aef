"""A panel's samples: those of a treatment's trials below each other, and in buckets of equal width.

One array for all trials of a treatment: a run has hundreds of trials, and a call of numpy costs more than the few
thousand samples of one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dbdyno.analysis.over_time import floats, middles_of
from dbdyno.analysis.statistics.estimate import median

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

BRIDGED = 2  # buckets without a sample that are filled from their neighbours; a longer hole stays a hole


@dataclass(frozen=True)
class Samples:
    """Samples of one or more trials, trial after trial and each in order of time; arrays are of shape (n,), n >= 1."""

    starts: Places  # of each trial, the place of its first sample; shape (trials,)
    t_s: Floats  # middle of the interval that a sample stands for
    values: Floats

    def each(self, array: Floats) -> list[Floats]:
        """Return ``array``, which is of shape (n,), by trial."""
        return np.split(array, self.starts[1:])

    def spacings_s(self, alone: float) -> list[float]:
        """Return each trial's usual distance between samples; ``alone`` for a trial of a single one."""
        return [median(np.diff(t)) if len(t) > 1 else alone for t in self.each(self.t_s)]

    def share_above_0(self) -> Floats:
        """Return of each trial the share of its samples that are above 0."""
        return np.add.reduceat(self.values > 0, self.starts, dtype=np.float64) / self._lengths()

    def moves(self, share: float) -> bool:
        """Whether in any trial the samples differ by more than ``share`` of the largest of their absolute values."""
        low, high = (np.asarray(of.reduceat(self.values, self.starts)) for of in (np.minimum, np.maximum))
        return bool(np.any(high - low > share * np.maximum(np.abs(low), np.abs(high))))

    def bucketed(self, width_s: float, count: int) -> Floats:
        """Return mean, smallest and largest sample per bucket, shape (3, trials, count); NaN where there is none."""
        trial = np.repeat(np.arange(len(self.starts)), self._lengths())
        place = trial * count + np.minimum((self.t_s / width_s).astype(np.int64), count - 1)
        starts = np.flatnonzero(np.diff(place, prepend=-1))
        filled = place[starts]
        out = np.full((3, len(self.starts) * count), np.nan)
        out[0, filled] = np.add.reduceat(self.values, starts) / np.diff(starts, append=len(place))
        out[1, filled] = np.minimum.reduceat(self.values, starts)
        out[2, filled] = np.maximum.reduceat(self.values, starts)
        for step in range(2, BRIDGED + 2):
            short = (np.diff(filled) == step) & (np.diff(filled // count) == 0)
            before = filled[:-1][short]
            for at in range(1, step):
                out[:, before + at] = out[:, before] + at / step * (out[:, before + step] - out[:, before])
        return out.reshape(3, len(self.starts), count)

    def _lengths(self) -> Places:
        return np.diff(self.starts, append=len(self.values))


class Stacked:
    """A series of some trials, its columns below each other; made once for all panels of that series."""

    def __init__(self, trials: Sequence[Mapping[str, npt.NDArray[Any]]]) -> None:
        """Take the columns of each trial's series; those without ``t_s`` are left out."""
        self._trials = [columns for columns in trials if "t_s" in columns]
        timed = [_timed(floats(columns["t_s"])) for columns in self._trials]
        offsets = np.cumsum([0, *(len(columns["t_s"]) for columns in self._trials)])
        self._places = _joined([places + offset for (places, _), offset in zip(timed, offsets, strict=False)], np.intp)
        self._t_s = _joined([middles for _, middles in timed], np.float64)
        self._trial = np.repeat(np.arange(len(timed)), [len(middles) for _, middles in timed])

    def samples(self, names: Sequence[str], scale: float) -> Samples | None:
        """Return the sum of these columns, times ``scale``, of the trials that have them; None where there is none."""
        if not any(all(name in columns for name in names) for columns in self._trials):
            return None
        values = sum((self._column(name) for name in names), start=np.zeros(1))[self._places]
        keep = np.isfinite(values)
        if not keep.any():
            return None
        starts = np.flatnonzero(np.diff(self._trial[keep], prepend=-1))
        return Samples(starts, self._t_s[keep], scale * values[keep])

    def _column(self, name: str) -> Floats:
        return _joined(
            [
                floats(columns[name]) if name in columns else np.full(len(columns["t_s"]), np.nan)
                for columns in self._trials
            ],
            np.float64,
        )


def _joined(parts: Sequence[npt.NDArray[Any]], kind: type) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, kind)


def _timed(ends: Floats) -> tuple[Places, Floats]:
    """Return which samples are of a known time, in order of it, and the middles of their intervals."""
    known = np.flatnonzero(np.isfinite(ends) & (ends >= 0))
    order, middles = middles_of(ends[known])
    return known[order], middles
