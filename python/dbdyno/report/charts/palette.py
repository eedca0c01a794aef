"""Colours that stay apart for colour-blind readers, and stand out from a light and from a dark page.

Those of Okabe and Ito (2008), moved until every one has a contrast of at least 3 with its page (WCAG 2.2, 1.4.11) and
any two differ, also as seen with protanopia and deuteranopia (Machado et al. 2009). A chart is drawn in the light
ones; where a page is dark, its style gives each the dark one in its place.
"""

from typing import Final

from dbdyno.model.word import Word

LIGHT: Final = "#ffffff"
DARK: Final = "#14171a"
TREATMENTS: Final = ("#0A5BB2", "#96400C", "#03A765", "#BD2D8B", "#A87400", "#5496BE", "#70625F")
TREATMENTS_ON_DARK: Final = ("#3C8BE3", "#FEA158", "#58D399", "#E5A3C3", "#E6B422", "#89E5FB", "#8E8E8E")
DASHES: Final[tuple[tuple[int, ...], ...]] = ((), (6, 3), (2, 2), (8, 3, 2, 3))
VERDICTS: Final = {word: word.tone.on_light for word in Word}
VERDICTS_ON_DARK: Final = {word: word.tone.on_dark for word in Word}


def treatment_colour(index: int) -> str:
    """Return the colour of the treatment at that place in the study, on a light page."""
    return TREATMENTS[index % len(TREATMENTS)]


def treatment_class(index: int) -> str:
    """Return the class of the page's style that has this colour, light or dark, as ``--own``."""
    return f"t{index % len(TREATMENTS)}"


def treatment_swatch(index: int) -> str:
    """Return the classes of its swatch in a legend: its colour, and its dashes once colours come again."""
    group = index // len(TREATMENTS) % len(DASHES)
    return f"{treatment_class(index)} d{group}" if group else treatment_class(index)


def treatment_dash(index: int) -> tuple[int, ...]:
    """Return its dash pattern, solid until the colours are used up."""
    return DASHES[index // len(TREATMENTS) % len(DASHES)]


def style() -> str:
    """Return the CSS that gives every colour its name, and a chart's colours their dark counterparts."""
    light = [*_named(TREATMENTS, VERDICTS), f"--paper: {LIGHT};"]
    dark = [*_named(TREATMENTS_ON_DARK, VERDICTS_ON_DARK), f"--paper: {DARK};"]
    names = [f"t{place}" for place in range(len(TREATMENTS))] + [word.replace(" ", "-") for word in VERDICTS]
    rules = [
        f":root {{ {' '.join(light)} }}",
        f"@media screen and (prefers-color-scheme: dark) {{ :root:not([data-printing]) {{ {' '.join(dark)} }} }}",
    ]
    rules += [f'svg [stroke="{LIGHT}"] {{ stroke: var(--paper); }}']
    for name, colour in zip(names, (*TREATMENTS, *VERDICTS.values()), strict=True):
        rules += [
            f'svg [fill="{colour}"] {{ fill: var(--{name}); }} svg [stroke="{colour}"] {{ stroke: var(--{name}); }}'
        ]
        rules += [f".{name} {{ --own: var(--{name}); }}"]
    return "\n".join(
        [*rules, *(f".swatch.d{group} {{ {_dashed(dash)} }}" for group, dash in enumerate(DASHES) if dash)]
    )


def _dashed(dash: tuple[int, ...]) -> str:
    """Return how a swatch shows a line's dashes: as a short piece of that line."""
    stops, at = [], 0
    for place, pixels in enumerate(dash):
        stops.append(f"{'transparent' if place % 2 else 'var(--own)'} {at}px {at + pixels}px")
        at += pixels
    piece = f"repeating-linear-gradient(90deg, {', '.join(stops)})"
    return f"width: 1.6rem; height: .2rem; border-radius: 0; vertical-align: middle; background: {piece};"


def _named(treatments: tuple[str, ...], verdicts: dict[Word, str]) -> list[str]:
    named = [f"--t{place}: {colour};" for place, colour in enumerate(treatments)]
    return named + [f"--{word.replace(' ', '-')}: {colour};" for word, colour in verdicts.items()]
