"""``[[workload.beside]]``: second loads beside the judged one, as a factor, and where none can be."""

import pytest

from dbdyno.errors import UserError
from dbdyno.plan.identity import image_key
from dbdyno.plan.plan import make_plan
from dbdyno.study.load import load_study

STUDY = """\
version = 1
[study]
title = "beside"
[stack]
{stack}
[workload]
{workload}
[[workload.beside]]
name = "backup"
{beside}
{more}
"""
OLTP = 'kind = "oltp"\nload = "read_only"\nclients = 4\nduration = "8s"'
DUMP = 'kind = ["none", "dump"]\nstart = "2s"'


def loaded(tmp_path, scale="", **parts):
    path = tmp_path / "study.toml"
    given = {"workload": OLTP, "stack": 'device = "here"', "beside": DUMP, "more": "", **parts}
    path.write_text(STUDY.format(**given), encoding="utf-8")
    return load_study(path, scale)


def test_a_list_of_kinds_is_a_factor_by_the_name_of_the_load(tmp_path):
    study = loaded(tmp_path)
    (factor,) = study.factors
    assert (factor.name, factor.labels(), factor.section) == ("backup", ["none", "dump"], "workload")
    without, beside = (spec for _, spec in study.combinations())
    assert without.loads_beside == {}
    assert without.connections == 4
    assert beside.loads_beside["backup"].start == 2
    assert beside.connections == 5
    assert image_key(without, "server", {}) == image_key(beside, "server", {}), "both begin with the same bytes"
    assert make_plan(study, seed=1).header({}).setup().startswith("kind oltp, load read_only, clients 4, duration 8s, ")
    assert "backup beside it (start 2s)" in make_plan(study, seed=1).header({}).setup()


def test_other_fields_vary_under_both_names_and_a_scale_replaces_all(tmp_path):
    more = '[[scale.full.workload.beside]]\nname = "backup"\nkind = "mariabackup"\nthrottle = [10, 100]'
    at_full_scale = loaded(tmp_path, more=more, scale="full")
    assert [factor.name for factor in at_full_scale.factors] == ["backup.throttle"]
    assert [spec.loads_beside["backup"].throttle for _, spec in at_full_scale.combinations()] == [10, 100]


def test_tables_of_its_own_are_part_of_the_prepared_data(tmp_path):
    own = loaded(tmp_path, beside='kind = ["none", "oltp"]\nload = "write_only"\nrate = 5.0')
    without, beside = (spec for _, spec in own.combinations())
    assert image_key(without, "server", {}) != image_key(beside, "server", {})
    assert beside.loads_beside["backup"].rate == 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"beside": 'kind = "dmp"'}, r':13: workload.beside.kind: is "dmp"; allowed are none, dump.*mean "dump"'),
        ({"beside": "start = 3"}, "workload.beside.kind: is missing; allowed are none, dump"),
        ({"beside": 'kind = "dump"\nstart = "9s"'}, r":14: workload.beside.start: is 9 s, not before measuring ends"),
        ({"beside": 'kind = "dump"\nthrottle = 3'}, "workload.beside.throttle: is unknown here"),
        ({"beside": 'kind = "dump"\ninto = "tape"'}, "workload.beside.into: .*allowed are disk, nowhere"),
        ({"beside": 'kind = "alter"\nstatement = "ALTER TABLE a ADD b INT; DROP TABLE a"'}, "is not a single ALTER"),
        ({"beside": 'kind = "alter"\nstatement = "DROP TABLE a"'}, "is not a single ALTER"),
        ({"beside": 'kind = "script"\nfile = "none.sql"'}, "workload.beside.file: .*can't be read"),
        ({"beside": 'kind = "oltp"\nwarmup = "1s"'}, "workload.beside.warmup: is for the judged load"),
        ({"beside": f'{DUMP}\n[[workload.beside]]\nname = "backup"\nkind = "dump"'}, "a second time"),
        ({"beside": f'{DUMP}\n[[workload.beside]]\nkind = "dump"'}, "workload.beside.name: is missing"),
        ({"beside": f'{DUMP}\n[[workload.beside]]\nname = "device"\nkind = "dump"'}, "the name of a field"),
        ({"workload": 'kind = "bulk"'}, "of which it is not known when measuring begins"),
        ({"workload": f'{OLTP}\nclients_from = ["c1"]'}, "with workload.clients_from"),
        (
            {"workload": OLTP.replace("oltp", "ledger").replace('load = "read_only"\n', ""), "more": "[crash]"},
            "h .crash",
        ),
        ({"stack": 'server = "mysql://me@h/bench"'}, "workload.beside: can't be given with an external server"),
        ({"stack": 'device = "hdd-7200"\nsize = "1GiB"\nfilesystem = "ext4"\nkernel = "debian-6.1"'}, "virtual mach"),
        (
            {"stack": 'device = "here"\nserver = "mysql-8.0"', "beside": 'kind = "mariabackup"'},
            'is "mariabackup", which backs up MariaDB alone',
        ),
        ({"beside": f'{DUMP}\n[[workload.beside]]\nname = 5\nkind = "dump"'}, ":16: .*is 5 but must be text in"),
        ({"beside": f'{DUMP}\n[[workload.beside]]\nname = "copy"'}, ":16: workload.beside.kind: is missing"),
        ({"more": "[beside]\nx = 1"}, "beside: is unknown; known are"),
    ],
)
def test_what_can_t_run_beside_is_refused_where_it_stands(tmp_path, given, message):
    with pytest.raises(UserError, match=message):
        loaded(tmp_path, **given)


def test_a_section_of_that_name_without_any_load_beside_is_unknown(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(f'version = 1\n[study]\n[stack]\ndevice = "here"\n[workload]\n{OLTP}\n[beside]\n', "utf-8")
    with pytest.raises(UserError, match="beside: is unknown; known are"):
        load_study(path)


def test_one_table_instead_of_several_is_refused(tmp_path):
    path = tmp_path / "study.toml"
    text = STUDY.format(workload=OLTP, stack='device = "here"', beside=DUMP, more="")
    path.write_text(text.replace("[[workload.beside]]", "[workload.beside]"), encoding="utf-8")
    with pytest.raises(UserError, match=r"must be written as \[\[workload.beside\]\]"):
        load_study(path)
