"""What the emulated disk must hold, beside the reference and the peer, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass, replace

# ublk-disksim's own claims (reference/devices.md), on its authors' hardware.
PEER = {"floor": "15-35", "iops": "about 200000", "lateness": "75-127"}
NO_CORE_FREE = 0.5  # idle processors below which what is late or slow is reported and not judged


@dataclass(frozen=True)
class Row:
    """A figure beside what it may be. ``met`` is ``None`` where this host cannot say, and ``note`` says why."""

    group: str
    what: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    reference: str = ""
    peer: str = ""
    note: str = ""
    unjudged: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the figure is within its limits."""
        if self.unjudged:
            return None
        return (self.low is None or self.value >= self.low) and (self.high is None or self.value <= self.high)

    @property
    def limits(self) -> str:
        """What it may be, for people."""
        if self.low is not None and self.high is not None:
            return f"{self.low:.5g} to {self.high:.5g}"
        return f">= {self.low:.5g}" if self.low is not None else f"<= {self.high:.5g}" if self.high is not None else ""

    def within(self, expected: float, share: float) -> Row:
        """The same; it may differ from the expected figure by a share of it."""
        return replace(self, low=expected * (1 - share), high=expected * (1 + share), reference=f"{expected:.5g}")

    def unless_limited(self, ceiling: float, idle: float) -> Row:
        """The same; not judged where this host can't pass on as much.

        That is so if it can't without a model (``ceiling``), or if the figure is short while all processors were busy.
        """
        if self.low is not None and ceiling * 0.95 < self.low:
            note = f"the host is the limit: {ceiling:.5g} {self.unit} without a model"
            return replace(self, unjudged=True, note=note)
        if self.low is not None and self.value < self.low and idle < NO_CORE_FREE:
            return replace(self, unjudged=True, note=f"{idle:.2f} processors idle: no core was free")
        return self

    def beside_floor(self, floor_us: float, asked_us: float) -> Row:
        """The same beside what a device without latency takes here; not judged where that is more than was asked."""
        note = f"floor {floor_us:.4g} us" + (f"; {self.note}" if self.note else "")
        return replace(self, note=note, unjudged=self.unjudged or floor_us > asked_us)

    def text(self) -> str:
        """A line of the table."""
        verdict = {True: "met", False: "NOT MET", None: "not judged"}[self.met]
        note = f" ({self.note})" if self.note else ""
        return (
            f"  {self.what:<57} {self.value:>10.5g} {self.unit:<6} {self.limits:<20} {self.reference:<12} "
            f"{self.peer:<13} {verdict}{note}"
        )


HEAD = f"  {'':<57} {'measured':>10} {'':<6} {'limits':<20} {'reference':<12} {'peer':<13}"


def lateness(group: str, what: str, p99_us: float, idle: float) -> Row:
    """How late 99 % of the answers were at most."""
    busy = idle < NO_CORE_FREE
    note = f"{idle:.2f} processors idle" + (": no core was free" if busy else "")
    return Row(group, what, p99_us, "us", high=75, peer=PEER["lateness"], note=note, unjudged=busy)


def left(group: str, what: str, mean_us: float | None) -> Row:
    """How much longer than asked for requests took for the block layer in the mean, after all compensation."""
    if mean_us is None:
        return Row(group, what, 0.0, "us", note="the host does not show when requests start", unjudged=True)
    return Row(group, what, mean_us, "us", low=-10, high=10)
