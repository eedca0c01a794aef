"""The report of a quick look at storage, as text, page and values."""

import json
from dataclasses import replace

import pytest

from dbdyno.analysis import quick
from dbdyno.report.quick import document
from dbdyno.report.render import html, text
from dbdyno.report.render import json as values
from tests.unit.analysis.test_analysis_quick import target


def found(**more):
    here = target("/srv", noise=0.03)
    facts = {"filesystem": "ext4 (rw)", "disk": "sda (SomeDrive)", "host": "db1", "measured": "2026-01-02 03:04 UTC"}
    noise = quick.noise_of(here)
    like = quick.likeness(here, [target("ssd-sata", fsync=600, randread=9000, randwrite=20000)])
    return quick.Quick(here, quick.Host(0.02, 0.0, 0.1), noise, quick.least_shown(noise), like, facts=facts, **more)


def test_as_text(snapshot):
    assert text.render(document(found())) == snapshot


def test_a_least_difference_that_nobody_plans_by_is_no_figure():
    shown = text.render(document(replace(found(), shown=272.0)))
    assert "8 blocks can detect no difference; measure when the host is idle" in " ".join(shown.split())
    assert "27,200" not in shown


def test_held_against_another(snapshot):
    other = target("/other", noise=0.03, seed=2, fsync=250, randread=9000, randwrite=20000)
    here = found(against=other, verdicts=quick.verdicts(target("/srv", noise=0.03), other))
    assert text.render(document(here)) == snapshot


def test_a_noisy_host_and_cheap_flushes_are_said_first():
    here = target("/srv", fsync=15000, randread=9000, randwrite=20000)
    noisy = quick.Quick(here, quick.Host(0.5, 0.1, 0.1), quick.noise_of(here), None, None)
    shown = text.render(document(noisy))
    assert (
        shown.index("only a power cut".capitalize())
        < shown.index("used 50 % of the processors")
        < shown.index("Figures")
    )


def test_values_are_plain_and_have_every_figure():
    read = json.loads(values.render(document(found())))
    assert [step["depth"] for step in read["targets"][0]["steps"]] == [1, 8, 32] * 3
    assert read["likeness"]["drive"] == "ssd-sata"
    assert read["least_difference_shown"] > 0


def test_a_folder_with_a_hostile_name_is_escaped():
    here = target("/tmp/<script>alert(1)</script>")
    page = html.render(document(quick.Quick(here, quick.Host(0.0, 0.0, 0.0), quick.noise_of(here), None, None)))
    assert "<script>alert" not in page


def test_two_disks_are_compared_in_these_seconds_and_never_as_such():
    """Whatever the word is: each sentence about both says for how long it holds."""
    here = target("/srv", noise=0.03)
    for others in ({"fsync": 250}, {"fsync": 500}, {"fsync": 480}):
        other = target("/other", noise=0.03, seed=2, **others)
        looked = found(against=other, verdicts=quick.verdicts(here, other))
        seconds = sum(one.seconds for one in (looked.target, other))
        lines = [line for line in text.render(document(looked)).splitlines() if "/srv" in line and "/other" in line]
        assert lines
        assert all(f", in these {seconds:,.0f} seconds: /srv " in line for line in lines)
        told = json.loads(values.render(document(looked)))
        assert told["verdicts_hold_for_seconds"] == pytest.approx(seconds, rel=1e-4)


def test_a_model_takes_no_time_of_the_session():
    model = replace(target("nvme", fsync=250), kind="model")
    looked = found(against=model, verdicts=quick.verdicts(target("/srv"), model))
    assert looked.session_seconds == looked.target.seconds > 0
