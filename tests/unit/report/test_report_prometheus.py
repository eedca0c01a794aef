"""A run's figures in Prometheus's text format, read by Prometheus's own parsers."""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from dbdyno.analysis.analyse import analyse
from dbdyno.model.design import Treatment
from dbdyno.model.metrics import METRICS
from dbdyno.report.outcome import Exported, base_unit, factor_words, render

NASTY = 'a "quoted" \\ back\nslash'


def exported(label, run):
    return Exported(label, run, analyse(run))


def families(text):
    """Return name -> samples, as both parsers have them: the text is valid in both formats."""
    found = {one.name: one.samples for one in text_string_to_metric_families(text)}
    assert found == {one.name: one.samples for one in openmetrics.text_string_to_metric_families(text)}
    return found


def values(found, name, **labels):
    return [one.value for one in found[name] if labels.items() <= one.labels.items()]


@pytest.fixture
def run(build):
    return build(8)


def test_both_parsers_read_it_and_each_family_stands_once(run):
    text = render([exported("first", run), exported("second", run)])
    found = families(text)
    assert len(re.findall(r"^# TYPE ", text, re.MULTILINE)) == len(found)
    assert all(name.startswith("dbdyno_") for name in found)
    assert {one.labels["run"] for samples in found.values() for one in samples} == {"first", "second"}
    assert text.endswith("\n# EOF\n")


def test_figures_are_means_in_base_units(run):
    found = families(render([exported("r", run)]))
    trials = analyse(run).blocks.of("t3")
    labels = {"treatment": "ssd-sata / mq-deadline", "factor_device": "ssd-sata", "factor_scheduler": "mq-deadline"}
    (p99,) = values(found, "dbdyno_latency_p99_seconds", **labels)
    assert p99 == pytest.approx(sum(one.metrics["latency_ms_p99"] for one in trials) / len(trials) / 1000)
    (cpu,) = values(found, "dbdyno_client_cpu_per_query_seconds", **labels)
    assert cpu == pytest.approx(110e-6)
    assert values(found, "dbdyno_trials", **labels) == [8.0]
    assert values(found, "dbdyno_trials_failed") == [
        float(sum(failure.treatment == one.id for failure in run.failures)) for one in run.design.treatments
    ]


def test_comparisons_have_the_verdict_s_figures(run):
    found = families(render([exported("r", run)]))
    for verdict in analyse(run).verdicts:
        of = {"level": verdict.level, "baseline": verdict.baseline}
        assert values(found, "dbdyno_comparison_effect_ratio", **of) == [verdict.effect.value]
        assert values(found, "dbdyno_comparison_effect_low_ratio", **of) == [verdict.effect.low]
        assert values(found, "dbdyno_comparison_verdict", **of, verdict=verdict.verdict) == [1.0]
        assert sum(values(found, "dbdyno_comparison_verdict", **of)) == 1.0


def test_texts_of_others_end_no_label(build):
    treatments = [Treatment("t1", {"device-x": NASTY}), Treatment("t2", {"device-x": "plain"})]
    run = build(4, rates={"t1": 1.0, "t2": 2.0}, pairs=[("t1", "t2")], treatments=treatments)
    found = families(render([exported('a"b\nc', replace(run, title="x\\y\n# HELP forged"))]))
    assert {one.labels["factor_device_x"] for one in found["dbdyno_trials"]} == {'a "quoted" \\ back slash', "plain"}
    (info,) = found["dbdyno_run_info"]
    assert (info.labels["study"], info.labels["run"]) == ("x\\y # HELP forged", 'a"b c')
    assert "forged" not in found


def test_what_is_unknown_is_left_out(build):
    nothing = replace(build(2), trials=[], failures=[])
    text = render([exported("r", nothing)])
    assert not any(math.isnan(one.value) for samples in families(text).values() for one in samples)
    assert "dbdyno_latency" not in text


def test_every_metric_has_a_name_of_its_own_that_ends_in_a_base_unit():
    names = {metric.name: base_unit(metric) for metric in METRICS.values()}
    assert len({name for name, _ in names.values()}) == len(METRICS)
    assert all(re.fullmatch(r"[a-z_0-9]+", name) for name, _ in names.values())
    assert not [name for name, _ in names.values() if re.search(r"(^|_)(ms|us|ns|megabytes)(_|$)", name)]
    assert names["write_megabytes_per_second"] == ("write_bytes_per_second", 1e6)
    assert names["seek_bytes_mean"] == ("seek_mean_bytes", 1.0)
    assert names["seconds_real"] == ("real_seconds", 1.0)


def test_factors_whose_names_differ_in_signs_alone_have_labels_of_their_own(build):
    levels = {"device-x": "a", "device.x": "b", "device_x": "c", "other.y": "d"}
    run = build(2, rates={"t1": 1.0}, pairs=[], treatments=[Treatment("t1", levels)])
    (sample,) = families(render([exported("r", run)]))["dbdyno_trials"]
    own = {"factor_device_2d_x": "a", "factor_device_2e_x": "b", "factor_device__x": "c", "factor_other_y": "d"}
    assert own.items() <= sample.labels.items()


@given(st.sets(st.text("ab2de-._é", max_size=6), max_size=6))
def test_no_two_factors_share_a_label(names):
    found = factor_words(names)
    assert set(found) == names
    assert len({*found.values()}) == len(names)
    assert all(re.fullmatch(r"[a-zA-Z0-9_]*", word) for word in found.values())
