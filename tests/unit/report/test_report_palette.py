"""The colours of charts: seen against their page, and apart from each other, for colour-blind readers too."""

from itertools import combinations

import numpy as np
import pytest

from dbdyno.report.charts.svg import (
    DARK,
    LIGHT,
    TREATMENT_DASHES,
    TREATMENTS,
    TREATMENTS_ON_DARK,
    VERDICTS,
    VERDICTS_ON_DARK,
    stylesheet,
    treatment_class,
    treatment_dash,
    treatment_swatch,
)

# Machado, Oliveira and Fernandes (2009), severity 1.0, linear RGB.
SIGHT = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
PAGES = [
    (LIGHT, TREATMENTS, VERDICTS),
    (DARK, TREATMENTS_ON_DARK, VERDICTS_ON_DARK),
]


def linear(colour):
    """sRGB to linear light (IEC 61966-2-1)."""
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """WCAG 2.2: relative luminance, lighter over darker."""
    light, dark = sorted((XYZ[1] @ linear(colour) for colour in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(rgb):
    """CIE 1976 L*a*b* of linear RGB, D65."""
    scaled = XYZ @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    f = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(("page", "treatments", "verdicts"), PAGES)
def test_every_mark_stands_out_from_its_page_and_every_word_can_be_read(page, treatments, verdicts):
    assert min(contrast(colour, page) for colour in treatments) >= 3
    assert min(contrast(colour, page) for colour in verdicts.values()) >= 4.5


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("treatments", [TREATMENTS, TREATMENTS_ON_DARK])
def test_no_two_treatments_look_alike(treatments, sight):
    seen = [lab(SIGHT[sight] @ linear(colour)) for colour in treatments]
    assert min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2)) > 15


def test_the_style_has_a_dark_colour_for_every_light_one():
    style = stylesheet()
    for light, dark in zip(TREATMENTS, TREATMENTS_ON_DARK, strict=True):
        assert f'svg [fill="{light}"]' in style
        assert f": {dark};" in style


def test_a_swatch_tells_apart_what_a_line_tells_apart():
    most = len(TREATMENTS) * len(TREATMENT_DASHES)
    looks = {(treatment_class(place), treatment_dash(place)) for place in range(most)}
    assert len(looks) == len({treatment_swatch(place) for place in range(most)}) == most
    assert ".swatch.d1 {" in stylesheet()
