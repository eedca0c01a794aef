"""The random order of a run's trials, and their seeds: the same on every machine."""

import hashlib
from dataclasses import dataclass

from dbdyno.model.design import Design, Fleet


@dataclass(frozen=True)
class Slot:
    """One trial to be run."""

    block: int  # from 1
    attempt: int  # from 1
    position: int  # from 1, in the run order of its block
    treatment: str

    @property
    def id(self) -> str:
        """Sorts in run order, as files do: ``b0003a1p002-t4``."""
        return f"b{self.block:04d}a{self.attempt}p{self.position:03d}-{self.treatment}"


def slots_of(design: Design, block: int, attempt: int) -> list[Slot]:
    """The trials of one attempt at a block, in the random order that the seed gives.

    Whole plots stand in random order, in each the parts of the block, and the trials inside each; without factors that
    are hard to change a block is a single plot. Steps on the same tables stand together in their own order.
    """
    plots = whole_plots(design)
    parts = {id_: min(part) for part in design.parts() for id_ in part}

    def place(row: list[str]) -> tuple[bytes, bytes, bytes]:
        first = row[0]
        of = ("plot", plots[first]), ("part", parts[first]), ("order", first)
        plot, part, order = (drawn(design.seed, what, block, attempt, name) for what, name in of)
        return plot, part, order

    ids = [id_ for row in sorted(design.steps(), key=place) for id_ in row]
    return [Slot(block, attempt, position, id_) for position, id_ in enumerate(ids, 1)]


def whole_plots(design: Design) -> dict[str, str]:
    """Treatment -> the first treatment with the same levels of all factors that are hard to change: its whole plot.

    A control that is no treatment of the study has no such level, and so is a whole plot of its own.
    """
    hard = [factor.name for factor in design.factors if factor.hard_to_change]
    first: dict[tuple[str, ...], str] = {}
    return {t.id: first.setdefault(tuple(t.levels.get(name, "") for name in hard), t.id) for t in design.tried}


def seed_of_host(seed: int, host: str, fleet: Fleet) -> int:
    """The seed of one host's blocks: its n-th has an order of its own, whichever hosts are faster.

    A study on one host has the order that it would have without the word.
    """
    return seed if len(fleet.hosts) == 1 else int.from_bytes(drawn(seed, "host", host)[:6])


def drawn(seed: int, *what: object) -> bytes:
    """A random number that the seed gives to this alone."""
    return hashlib.sha256("/".join(map(str, (seed, *what))).encode()).digest()
