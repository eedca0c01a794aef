"""``[levels.NAME]``: several fields as one level: what each treatment then has, and every mistake in it."""

import gzip
from pathlib import Path

import pytest

from dbdyno.cli.plan import plan_as_dict, plan_as_text
from dbdyno.errors import UserError
from dbdyno.plan.plan import aa_plan, make_plan
from dbdyno.servers.mysql.own import in_help
from dbdyno.study.levels import named_levels
from dbdyno.study.reported import fitting
from dbdyno.study.scale import place_in
from tests.unit.study.conftest import refusal

HELP = Path(__file__).parents[1] / "servers" / "kept_help"
DEVICES = '["hdd-7200", "ssd-sata"]'
END = "blocks = 6\n"
BASELINE = ('baseline = { device = "hdd-7200" }\n', "")
OURS_AND_VENDOR = """\
[levels.ours]
[levels.vendor]
innodb_io_capacity = 2000
scheduler = "kyber"
server = "mariadb"
[levels.vendor.queue]
nr_requests = 32
iosched = { read_lat_nsec = 1000000 }
"""


@pytest.fixture
def named(load):
    """Load the study with these levels instead of its two devices."""

    def make(levels=OURS_AND_VENDOR, *changes, design=""):
        return load((DEVICES, '"ideal"'), BASELINE, (END, f"{END}{design}{levels}"), *changes)

    return make


def test_a_level_gives_its_fields_and_leaves_the_rest_as_the_study_has_it(named):
    study = named()
    (ours, at_ours), (vendor, at_vendor) = study.combinations()
    assert (ours, vendor) == ({"configuration": "ours"}, {"configuration": "vendor"})
    assert (at_ours.stack.scheduler, at_vendor.stack.scheduler) == ("mq-deadline", "kyber")
    assert (at_ours.queue.nr_requests, at_vendor.queue.nr_requests) == (64, 32)
    assert (at_ours.queue.iosched, at_vendor.queue.iosched) == ({}, {"read_lat_nsec": 1_000_000})
    assert at_ours.server.settings == {"innodb_buffer_pool_size": "256M"}
    assert at_vendor.server.settings == {"innodb_buffer_pool_size": "256M", "innodb_io_capacity": 2000}


def test_a_level_may_be_written_as_sections_or_as_plain_names(named):
    plain = '[levels."as is"]\n[levels.new]\ninnodb_flush_neighbors = 0\nmount = "noatime"\nclients = 20\n'
    whole = (
        '[levels."as is"]\n[levels.new.server.settings]\ninnodb_flush_neighbors = 0\n'
        '[levels.new.filesystem]\nmount = "noatime"\n[levels.new.workload]\nclients = 20\n'
    )
    first, second = ([spec for _, spec in named(text).combinations()] for text in (plain, whole))
    assert first == second
    assert first[1].workload.clients == 20


def test_a_level_may_keep_processors_awake(named):
    plan = make_plan(named("[levels.halting]\n[levels.awake]\nawake = true\n"))
    assert [spec.host.awake for spec in plan.specs.values()] == [False, True]


def test_levels_cross_with_other_factors_in_the_order_of_the_file(named):
    study = named(OURS_AND_VENDOR, ("clients = 10", "clients = [1, 10]"))
    labels = [labels for labels, _ in study.combinations()]
    assert labels[:2] == [{"clients": "1", "configuration": "ours"}, {"clients": "1", "configuration": "vendor"}]
    assert [treatment.label for treatment in make_plan(study).design.treatments] == [
        "clients 1 / ours",
        "clients 1 / vendor",
        "clients 10 / ours",
        "clients 10 / vendor",
    ]


def test_the_factor_and_the_baseline_go_by_name(named):
    design = 'baseline = { advice = "vendor" }\n'
    plan = make_plan(named('[levels]\nfactor = "advice"\n' + OURS_AND_VENDOR, design=design))
    assert [(factor.name, factor.section) for factor in plan.design.factors] == [("advice", "levels")]
    assert plan.design.baseline == "t2"


def test_what_the_levels_give_is_in_the_plan(named):
    plan = make_plan(named())
    text = plan_as_text(plan, [])
    said = "  vendor: innodb_io_capacity 2000, scheduler kyber, server mariadb, nr_requests 32, read_lat_nsec 1000000"
    assert said in text.splitlines()
    assert "  ours: the study as it stands" in text.splitlines()
    given = plan_as_dict(plan, [])["levels"]["configuration"]
    assert given["ours"] == {}
    assert given["vendor"]["server.settings.innodb_io_capacity"] == "2000"


def test_what_differs_between_two_levels_is_known_field_by_field(named):
    (factor,) = make_plan(
        named('[levels.a]\nscheduler = "none"\nclients = 3\n[levels.b]\nclients = 4\n')
    ).design.factors
    assert factor.differing("a", "b") == (("stack", "scheduler"), ("workload", "clients"))
    assert factor.differing("a", "a") == ()


def test_levels_of_one_section_are_a_factor_of_that_section(named):
    """A ranking tells what is of the load from what is of the stack."""
    (factor,) = make_plan(named("[levels.few]\nclients = 2\n[levels.many]\nclients = 40\n")).design.factors
    assert factor.section == "workload"


def test_the_identity_of_a_study_holds_what_its_levels_give(named):
    one, other = (make_plan(named(OURS_AND_VENDOR.replace("2000", number)), seed=1) for number in ("2000", "3000"))
    assert one.study_sha256() != other.study_sha256()
    assert one.study.raw["levels"]["vendor"]["queue"] == {"nr_requests": 32, "iosched": {"read_lat_nsec": 1_000_000}}
    assert "nr_requests" not in one.header({}).setup()
    assert "device ideal" in one.header({}).setup()


def test_noise_may_be_measured_at_a_named_level(named):
    plan = aa_plan(named(), treatment="vendor", seed=1)
    assert {spec.stack.scheduler for spec in plan.specs.values()} == {"kyber"}
    assert "levels" not in plan.study.raw


def test_what_the_server_says_is_placed_at_the_level(named):
    study = named()
    path = ("server", "settings", "innodb_io_capacity")
    spec = [spec for _, spec in study.combinations()][1]
    assert place_in(study, spec, path) == f"{study.path}:23: levels.vendor.innodb_io_capacity"


def test_a_published_row_names_a_level_and_no_field_of_one(named):
    study = named()
    assert fitting(study, {"configuration": "vendor"}) == [{"configuration": "vendor"}]
    assert fitting(study, {"scheduler": "mq-deadline"}) == []


@pytest.mark.parametrize("kind", ["slap", "oltp"])
@pytest.mark.parametrize("server", sorted(path.name for path in HELP.iterdir()))
def test_every_variable_of_a_server_may_be_given_by_its_plain_name(kind, server):
    variables = in_help(gzip.decompress((HELP / server).read_bytes()).decode(errors="replace"))
    assert variables
    raw = {"workload": {"kind": kind}, "levels": {"one": dict.fromkeys(variables, 1), "other": {}}}
    found = []
    one, _ = named_levels(raw, {}, found)
    assert found == []
    assert set(one.fields) == {("server", "settings", name) for name in variables}


TWO = "[levels.a]\nsync_binlog = 1\n[levels.b]\n"
MISTAKES = {
    "one level": (
        "[levels.a]\nsync_binlog = 1\n",
        ':21: levels: has one level, "a"; give two or more, such as [levels',
    ),
    "no level": ("[levels]\n", ":21: levels: has no level; give two or more, such as [levels.ours] and"),
    "a list": (f"{TWO}innodb_io_capacity = [1, 2]\n", ":24: levels.b.innodb_io_capacity: is a list; a level gives"),
    "a table": (f"{TWO}innodb_io_capacity = {{ x = 1 }}\n", ":24: levels.b.innodb_io_capacity: is not a section that"),
    "the same twice": (f"{TWO}sync_binlog = 1\n", ":23: levels.b: gives the same as [levels.a]"),
    "no level's table": (f"[levels]\nc = 3\n{TWO}", ":22: levels.c: is 3 but must be a level: a table of fields"),
    "a slip in a name": (f"{TWO}clietns = 3\n", ":24: levels.b.clietns: is not a field of a study; a server variable"),
    "a field of the design": (
        f"{TWO}blocks = 3\n",
        ":24: levels.b.blocks: is a field of [design], which",
    ),
    "the kind of load": (f'{TWO}kind = "smack"\n', ":24: levels.b.kind: can't vary: it decides which fields"),
    "an unknown section": (
        f"{TWO}[levels.b.design]\nseed = 1\n",
        ":24: levels.b.design: is not a section that a level",
    ),
    "an unknown field": (f"{TWO}[levels.b.stack]\nsiez = 1\n", ":25: levels.b.stack.siez: is unknown here; known are"),
    "a value out of range": (f"{TWO}clients = 0\n", ":24: levels.b.clients: is 0; it must be at least 1"),
    "a setting that a study can't set": (f'{TWO}datadir = "x"\n', ":24: levels.b.datadir: is set by dbdyno"),
    "a combination": (f'{TWO}scheduler = "none"\nnr_requests = 256\n', ":25: levels.b.nr_requests: is 256; without"),
    "a tunable of no scheduler": (f"{TWO}read_lat_nsec = 1\n", ":24: levels.b.read_lat_nsec: is not a tunable of mq-"),
    "given twice in it": (
        f"{TWO}sync_binlog = 2\n[levels.b.server.settings]\nsync_binlog = 3\n",
        ":26: levels.b.server.settings.sync_binlog: is given twice in this level",
    ),
    "a factor of its own too": (
        f"{TWO}clients = 3\n",
        ":24: levels.b.clients: is a factor of its own in [workload]; give its values there, or one in each level",
        ("clients = 10", "clients = [1, 10]"),
    ),
    "a bad name for the factor": (
        f'[levels]\nfactor = "a b"\n{TWO}',
        ':22: levels.factor: is "a b", which is not a plain',
    ),
    "a field's name for the factor": (
        f'[levels]\nfactor = "device"\n{TWO}',
        ':22: levels.factor: is "device", which is',
    ),
    "a name that joins two": (f'{TWO}[levels."a / b"]\nclients = 3\n', ":24: levels.a / b: is not the name of a level"),
    "no section": ("levels = 3\n", ":21: design.levels: is unknown here"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_said_with_its_line(write_study, name):
    text, said, *changes = MISTAKES[name]
    path = write_study((DEVICES, '"ideal"'), BASELINE, (END, END + text), *changes)
    assert any(line.startswith(f"{path}{said}") for line in refusal(path).splitlines())


def test_a_name_of_two_sections_is_refused_with_both(load):
    text = f'{TWO}size = "1GiB"\n'
    load_of_files = ('kind = "slap"\nclients = 10\nqueries = 1000', 'kind = "fio"\nduration = "2s"')
    with pytest.raises(UserError, match=r"b\.size: is a field of several sections; .*levels\.b\.stack\] and \[levels"):
        load((DEVICES, '"ideal"'), BASELINE, load_of_files, (END, END + text))


def test_a_baseline_that_is_no_level_is_refused_with_those_there_are(named):
    with pytest.raises(UserError, match=r'configuration: is "vendr", not a level of configuration; levels are ours'):
        named(design='baseline = { configuration = "vendr" }\n')
