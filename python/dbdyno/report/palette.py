"""Colours that stay apart for colour-blind readers (Okabe and Ito 2008), on light and on dark ground."""

from typing import Final

TREATMENTS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C8C8C")
DASHES: Final[tuple[tuple[int, ...], ...]] = ((), (6, 3), (2, 2), (8, 3, 2, 3))
VERDICTS: Final = {
    "faster": "#009E73",
    "slower": "#D55E00",
    "equivalent": "#0072B2",
    "undecided": "#8C8C8C",
    "not comparable": "#CC79A7",
}


def treatment_colour(index: int) -> str:
    """Return the colour of the treatment at that place in the study."""
    return TREATMENTS[index % len(TREATMENTS)]


def treatment_dash(index: int) -> tuple[int, ...]:
    """Return its dash pattern, solid until the colours are used up."""
    return DASHES[index // len(TREATMENTS) % len(DASHES)]
