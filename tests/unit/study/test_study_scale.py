"""``[scale.NAME]`` and ``--scale``: sections that overrule the study's, mistakes at the lines of the scale."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.plan.plan import aa_plan, make_plan
from dbdyno.study.load import load_study
from dbdyno.study.scale import SECTIONS, scaled
from tests.unit.study.conftest import refusal

END = "blocks = 6\n"
FULL = END + '[scale.full.workload]\nqueries = 50000\n[scale.full.stack]\nsize = "8GiB"\n'


def specs(study):
    return [spec for _, spec in study.combinations()]


def test_a_scale_overrules_field_by_field(write_study):
    path = write_study((END, FULL + "[scale.full.server.settings]\nsync_binlog = 1\n"))
    (small, *_), (large, *_) = specs(load_study(path)), specs(load_study(path, "full"))
    assert (small.workload.queries, large.workload.queries) == (1000, 50000)
    assert (small.stack.size, large.stack.size) == (1 << 30, 8 << 30)
    assert small.workload.clients == large.workload.clients == 10
    assert large.server.settings == {**small.server.settings, "sync_binlog": 1}
    assert load_study(path, "full").scale == "full"


def test_a_scale_may_bring_a_factor_or_take_one_away(write_study):
    path = write_study((END, END + '[scale.full.workload]\nclients = [1, 50]\n[scale.one.stack]\ndevice = "ideal"\n'))
    path.write_text(path.read_text().replace('baseline = { device = "hdd-7200" }\n', ""))
    treatments = {name: len(make_plan(load_study(path, name)).design.treatments) for name in ("", "full", "one")}
    assert treatments == {"": 2, "full": 4, "one": 1}


@pytest.mark.parametrize(
    ("scale", "replaced", "kept"),
    [
        ('[scale.full.workload]\nduration = "9s"', ("workload", "queries"), ("workload", "duration", 9.0)),
        ("[scale.full.design]\nmax_blocks = 50", ("design", "blocks"), ("design", "max_blocks", 50)),
        ('[scale.full.design]\nuntil = "decided"', ("design", "blocks"), ("design", "until", "decided")),
    ],
)
def test_a_bound_takes_the_place_of_the_other(write_study, scale, replaced, kept):
    study = load_study(write_study((END, f"{END}{scale}\n")), "full")
    sections = {"workload": specs(study)[0].workload, "design": study.design}
    assert getattr(sections[replaced[0]], replaced[1]) is None
    assert getattr(sections[kept[0]], kept[1]) == kept[2]


def test_blocks_take_the_place_of_a_rule_for_stopping(write_study):
    study = load_study(write_study((END, "max_blocks = 20\n[scale.full.design]\nblocks = 9\n")), "full")
    assert (study.design.blocks, study.design.max_blocks) == (9, None)


MISTAKES = {
    "a level of the scale": ("[scale.full.workload]\nclients = [1, 0]", ":23: scale.full.workload.clients: is 0; it"),
    "a field that there is not": ("[scale.full.stack]\nsiez = 1", ":23: scale.full.stack.siez: is unknown here; known"),
    "a section that there is not": ("[scale.full.stak]\nsize = 1", ":22: scale.full.stak: is unknown here; a scale"),
    "a title": ('[scale.full.study]\ntitle = "x"', ":22: scale.full.study: is unknown here; a scale may overrule"),
    "no sections": ("[scale]\nfull = 3", ":23: scale.full: is 3 but must hold sections, such as [scale.full.workload]"),
    "no section": ("[scale.full]\nstack = 3", ":23: scale.full.stack: is 3 but must be a section"),
    "no table": ("scale = 3", ":22: design.scale: is unknown here"),
    "a combination": (
        '[scale.full.stack]\nscheduler = "none"\n[scale.full.queue]\nnr_requests = 1024',
        ":25: scale.full.queue.nr_requests: is 1024; without a scheduler",
    ),
    "a combination whose field is the study's": (
        '[scale.full.stack]\nmemory = "128MiB"',
        ':14: server.settings.innodb_buffer_pool_size: is "256M", not less than stack.memory',
    ),
    "a baseline that the scale takes away": (
        '[scale.full.stack]\ndevice = ["ideal", "nvme"]',
        ':20: design.baseline.device: is "hdd-7200", not a level of device; levels are ideal, nvme',
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_scale_is_found_whether_it_is_asked_for_or_not(write_study, name):
    text, said = MISTAKES[name]
    path = write_study((END, f"{END}{text}\n"))
    assert refusal(path).startswith(f"{path}{said}")


def test_an_unknown_scale_is_refused_with_those_that_there_are(write_study):
    path = write_study((END, FULL + "[scale.tiny.workload]\nqueries = 50\n"))
    with pytest.raises(UserError, match=r'has no scale "ful"; it has full, tiny. Did you mean "full"\?$'):
        load_study(path, "ful")
    with pytest.raises(UserError, match=r'has no scale "full"; it has none$'):
        load_study(write_study(), "full")


def test_noise_is_measured_at_the_scale_too(write_study):
    plan = aa_plan(load_study(write_study((END, FULL)), "full"))
    assert {spec.workload.queries for spec in plan.specs.values()} == {50000}
    assert plan.study.scale == "full"


_values = st.one_of(st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=2))
_fields = st.dictionaries(st.sampled_from(["a", "b", "settings"]), _values, max_size=3)
_sections = st.dictionaries(st.sampled_from(SECTIONS), _fields, max_size=3)


@given(_sections, _sections)
def test_all_that_a_scale_gives_holds_and_the_rest_stays(base, overruling):
    made = scaled({**base, "scale": {"x": overruling}}, "x")
    for section in base.keys() | overruling.keys():
        assert made[section] == base.get(section, {}) | overruling.get(section, {})
