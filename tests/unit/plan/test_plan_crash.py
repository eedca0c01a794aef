"""The plan of a study of crash safety: blocks from cuts, the control, and what so many cuts can show."""

import json
import re
import tomllib
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.analysis.safety import ALONE, share
from dbdyno.cli.plan import plan_as_dict, plan_as_text, planned_images
from dbdyno.errors import UserError
from dbdyno.model.cut import BOUND_MOST, RUNS_LEAST
from dbdyno.plan.plan import CUT_SECONDS, aa_plan, bound_of_none, crash_warnings, make_plan
from dbdyno.plan.stop_rule import StopRule
from dbdyno.store.header import header_in
from dbdyno.study.schema import CrashSection
from tests.unit.plan.test_plan_text import named

DESIGN = 'baseline = { device = "hdd-7200" }\nblocks = 6\n'
TIMED = ('kind = "slap"\nclients = 10\nqueries = 1000', 'kind = "ledger"\nclients = 10\nduration = "3s"')
POOL = 'innodb_buffer_pool_size = "256M"\n'
ON_HERE = (
    ('["hdd-7200", "ssd-sata"]', '"here"'),
    ('size = "1GiB"\nscheduler = "mq-deadline"\nfilesystem = "ext4"\n', ""),
    ("[queue]\nnr_requests = 64\n", ""),
)


@pytest.fixture
def crash(plan):
    """Make the plan of a crash study: what its section says, and further changes."""

    def make(text="", *changes, design="", **options):
        return plan(TIMED, (DESIGN, f"{design}[crash]\n{text}"), *changes, **options)

    return make


def settings(*pairs):
    return (POOL, POOL + "".join(f"{name} = {value}\n" for name, value in pairs))


def test_blocks_are_as_many_as_the_cuts_take(crash):
    made = crash("cuts = 95\ncuts_per_run = 10\n")
    assert (made.design.blocks, made.design.until) == (10, "blocks")
    assert crash("cuts = 95\n", blocks=3).design.blocks == 3


@pytest.mark.parametrize("until", ["decided", "open"])
def test_data_that_decide_when_to_stop_are_refused(crash, until):
    with pytest.raises(UserError, match="ends after its cuts; give --blocks for fewer or more"):
        crash("", stop_rule=StopRule(until, 40))


def test_the_control_is_the_baseline_with_its_log_synced_once_a_second(crash):
    made = crash("", settings(("innodb_flush_log_at_trx_commit", "[1, 2]")))
    base, control = made.specs[made.design.baseline], made.specs["control"]
    assert made.design.control.label == "control (innodb_flush_log_at_trx_commit = 0)"
    assert control.server.settings == {**base.server.settings, "innodb_flush_log_at_trx_commit": 0}
    assert control.model_copy(update={"server": base.server}) == base
    assert "control" not in {one.id for one in made.design.treatments}
    assert all("control" not in (one.baseline, one.level) for one in made.design.comparisons)


def test_a_treatment_that_is_the_control_is_not_run_twice(crash):
    made = crash("", settings(("innodb_flush_log_at_trx_commit", "[1, 0]")))
    assert made.design.control in made.design.treatments
    assert made.design.control.levels == {"device": "hdd-7200", "innodb_flush_log_at_trx_commit": "0"}
    assert len(made.specs) == len(made.design.treatments) == 4
    assert made.design.tried == made.design.treatments


# Engine, mode -> what the control is.
ENGINES = {
    ("innodb", "power"): ("innodb", "innodb_flush_log_at_trx_commit"),
    ("InnoDB", "kill"): ("InnoDB", "innodb_flush_log_at_trx_commit"),
    ("rocksdb", "power"): ("rocksdb", "rocksdb_flush_log_at_trx_commit"),
    ("aria", "power"): ("myisam", None),
    ("aria", "kill"): ("innodb", "innodb_flush_log_at_trx_commit"),
    ("archive", "power"): ("innodb", "innodb_flush_log_at_trx_commit"),
}


@pytest.mark.parametrize(("engine", "mode"), ENGINES)
def test_the_control_of_each_engine_is_one_that_loses(crash, engine, mode):
    wanted, variable = ENGINES[engine, mode]
    spec = crash(f'mode = "{mode}"\n', ("[queue]", f'engine = "{engine}"\n[queue]')).control.spec
    assert spec.stack.engine == wanted
    assert spec.server.settings == {"innodb_buffer_pool_size": "256M"} | ({variable: 0} if variable else {})


def test_myisam_is_its_own_control(crash):
    made = crash("", ("[queue]", 'engine = ["innodb", "myisam"]\n[queue]'), design='baseline = { engine = "myisam" }\n')
    assert made.design.control.id == made.design.baseline


def test_every_block_runs_the_control_once_in_random_order(crash):
    made = crash("")
    places = set()
    for block in range(1, 31):
        order = [slot.treatment for slot in made.slots(block, 1)]
        assert sorted(order) == ["control", "t1", "t2"]
        places.add(order.index("control"))
    assert places == {0, 1, 2}


def test_beside_whole_plots_the_control_is_one_of_its_own(crash):
    made = crash("", ('"mq-deadline"', '["mq-deadline", "none"]'), design='hard_to_change = ["device"]\n')
    plots = {"t1": "hdd", "t2": "hdd", "t3": "ssd", "t4": "ssd", "control": "control"}
    for block in range(1, 10):
        found = [plots[slot.treatment] for slot in made.slots(block, 1)]
        assert sorted(plot for plot, _ in groupby(found)) == ["control", "hdd", "ssd"]


def test_what_others_do_to_the_host_repeats_no_block_unless_asked(crash):
    assert crash("").design.interference == "note"
    assert crash("", design='interference = "repeat"\n').design.interference == "repeat"


def test_the_header_holds_the_control_and_old_ones_have_none(crash, plan, tmp_path):
    for made in (crash(""), plan()):
        header = made.header({"dbdyno": "0"})
        assert header_in(tmp_path, header.to_toml()) == header
    assert "control" not in tomllib.loads(plan().header({}).to_toml().decode())
    held = tomllib.loads(crash("").header({}).to_toml().decode())
    assert held["control"]["id"] == "control"
    assert held["study"]["crash"] == {}


def test_what_is_cut_is_part_of_what_is_measured(crash):
    first, same, other = crash("cuts = 100\n"), crash("cuts = 100\n"), crash('cuts = 100\nsurvivors = ["none"]\n')
    assert first.study_sha256() == same.study_sha256() != other.study_sha256()


def test_the_image_of_the_control_is_its_baselines(crash):
    assert planned_images(crash("")) == [["t1", "t2", "control"]]


def test_the_exact_bound_of_none_lost_is_that_of_the_tables():
    known = {30: 0.0950, 59: 0.0495, 60: 0.0487, 100: 0.0295, 300: 0.00994, 1000: 0.00299, 3000: 0.000998}
    for cuts, bound in known.items():
        assert bound_of_none(cuts) == pytest.approx(bound, rel=0.006)
    assert bound_of_none(RUNS_LEAST) <= BOUND_MOST < bound_of_none(RUNS_LEAST - 1)


@given(st.integers(1, 400), st.integers(1, 20))
def test_a_plan_promises_what_the_report_says_if_nothing_is_lost(cuts, each):
    section = CrashSection(cuts=cuts, cuts_per_run=each)
    found = share([(0, each)] * section.blocks, ALONE)
    assert found.at_most == pytest.approx(bound_of_none(section.blocks))
    assert found.if_independent == pytest.approx(bound_of_none(section.blocks * each))
    warned = [*crash_warnings(section, section.blocks)]
    assert (found.at_most > BOUND_MOST) == any("too few to call anything safe" in one for one in warned)


WARNED = {
    "cuts = 28\ncuts_per_run = 1\n": (
        "28 trials of each treatment are too few to call anything safe: if none loses, up to 10.1 % of such cuts still "
        "may, as cuts of one trial are alike; give crash.cuts = 29 or more"
    ),
    "cuts = 100\n": (
        "10 trials of each treatment are too few to call anything safe: if none loses, up to 25.9 % of such cuts still "
        "may, as cuts of one trial are alike; give crash.cuts_per_run = 3, or crash.cuts = 290"
    ),
    "cuts = 20\ncuts_per_run = 20\n": (
        "1 trial of each treatment is too few to call anything safe: if none loses, up to 95 % of such cuts still "
        "may, as cuts of one trial are alike; give crash.cuts_per_run = 1 and crash.cuts = 29"
    ),
    'cuts = 50\ncuts_per_run = 1\nwhen = ["uniform", "ack"]\n': (
        "of each of the 2 kinds of cut there are about 25, which alone show at best 11.3 %; give crash.cuts = 58 for "
        "a bound of 10 % to each"
    ),
}


@pytest.mark.parametrize("text", WARNED)
def test_cuts_that_are_too_few_are_warned_of(crash, text):
    assert [*crash(text).warnings()] == [WARNED[text]]


@pytest.mark.parametrize(("size", "warned"), [("8M", 1), (8 << 20, 1), ("64M", 0), ("1G", 0)])
def test_a_log_so_small_that_it_is_synced_all_the_time_makes_no_control(crash, size, warned):
    found = [*crash("", settings(("innodb_log_file_size", json.dumps(size)))).warnings()]
    said = "so small a log is synced all the time, whatever is asked for, so that the control may lose too seldom"
    assert [said in one for one in found] == [True] * warned


@pytest.mark.parametrize("text", WARNED)
def test_the_remedy_that_is_named_is_one(crash, text):
    """Whichever of the two ways is taken, nothing is warned of any more."""
    said = WARNED[text].rpartition("; give ")[2]
    for remedy in said.split(", or ") if " and " not in said else [said]:
        given = dict(re.findall(r"crash\.(\w+) = (\d+)", remedy))
        kept = [line for line in text.splitlines() if line.split(" = ")[0] not in given]
        mended = [*kept, *(f"{name} = {value}" for name, value in given.items()), ""]
        assert [*crash("\n".join(mended)).warnings()] == []


@pytest.mark.parametrize("text", ["cuts = 29\ncuts_per_run = 1\n", "", 'cuts = 300\nwhen = ["uniform", "ack"]\n'])
def test_cuts_that_are_enough_are_not(crash, text):
    assert [*crash(text).warnings()] == []


def test_text(crash, snapshot):
    made = crash('when = ["uniform", "ack"]\nsurvivors = ["random-4096", "lying"]\n')
    assert named(plan_as_text(made, [])) == snapshot


def test_text_of_kills_here_where_a_treatment_is_the_control(crash, snapshot):
    made = crash('mode = "kill"\ncuts = 20\n', *ON_HERE, settings(("innodb_flush_log_at_trx_commit", "[1, 0]")))
    assert named(plan_as_text(made, []).split("\nblocks (")[0]) == snapshot


def test_json(crash, plan):
    made = plan_as_dict(crash("cuts = 60\n"), [])
    assert json.loads(json.dumps(made)) == made
    assert made["crash"]["strata"] == [{"when": "uniform", "survivors": "random-4096"}]
    assert made["crash"]["control"]["id"] == "control"
    assert made["crash"]["bound_of_none"] == pytest.approx(0.393, rel=0.01)
    assert made["crash"]["bound_of_none_if_independent"] == pytest.approx(0.0487, rel=0.01)
    assert "crash" not in plan_as_dict(plan(), [])


def test_time_counts_cuts_and_the_control(crash):
    many, few = crash("cuts_per_run = 10\n"), crash("cuts_per_run = 1\n")
    assert many.seconds_per_trial() - few.seconds_per_trial() == pytest.approx(9 * CUT_SECONDS)
    assert many.seconds(2) == pytest.approx(2 * 3 * many.seconds_per_trial())


def test_an_a_a_run_is_of_speed(crash):
    with pytest.raises(
        UserError, match=r"an A/A run is about speed, \[crash\] about what is lost; leave \[crash\] out"
    ):
        aa_plan(crash("").study)


def test_one_treatment_alone_is_judged_without_a_warning(crash):
    made = crash("", ('["hdd-7200", "ssd-sata"]', '"ssd-sata"'))
    assert [*made.warnings()] == []
    assert set(made.specs) == {"t1", "control"}
    assert make_plan(made.study, seed=1).design == made.design
