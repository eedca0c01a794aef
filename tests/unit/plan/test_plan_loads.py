"""Kinds of load in a plan: what its verdicts are about, which treatments share prepared data, and own files."""

import hashlib
import json

import pytest

from dbdyno.errors import HostError
from dbdyno.plan.identity import image_key
from dbdyno.plan.plan import why_metric_is_useless
from dbdyno.study.workloads import KINDS
from tests.examples import example_of

BOUND = {
    "slap": "queries = 1000",
    "bulk": "tables = 10",
    "ingest": "rows = 1000",
    "fio": 'profile = "SEQ1M Q8T1"\nload = "read"',
    "bonnie": 'size = "2GiB"',
    "mysqlslap": "queries = 1000",
    "command": 'command = "true"',
    "replay-log": 'file = "mine.sql"',
    "trace": 'file = "mine.sql"',
    **dict.fromkeys(("smack", "oltp", "tpcc", "ledger", "script", "sysbench"), "events = 1000"),
}
METRICS = {"tpcc": "new_orders_per_minute", "ingest": "rows_per_second", "bulk": "rows_per_second",
           "fio": "megabytes_per_second", "bonnie": "seeks_per_second",
           "command": "seconds_real", "replay-log": "latency_ms_p99"}  # fmt: skip
NO_SERVER = [("clients = 10\n", ""), ('[server.settings]\ninnodb_buffer_pool_size = "256M"\n', "")]


def of_kind(kind, *fields):
    """Return the changes that give the study another kind of load, with further fields."""
    example = [f"{name} = {json.dumps(value)}" for name, value in example_of(kind).items() if name != "kind"]
    lines = "\n".join([BOUND.get(kind) or "\n".join(example), *fields])
    if kind == "script":
        lines += '\nfile = "mine.sql"'
    changes = [('kind = "slap"', f'kind = "{kind}"'), ("queries = 1000", lines)]
    if not KINDS[kind].ON_HOST:
        changes.append(('size = "1GiB"', 'size = "1GiB"\nkernel = "6.x"'))
    if KINDS[kind].SERVER == "none":
        return [*changes, *NO_SERVER]
    return [*changes, NO_SERVER[0]] if "clients" not in KINDS[kind].model_fields else changes


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "mine.sql"
    path.write_text("SELECT 1;\n")
    return path


JOB = "[global]\ninclude more.inc\n[replay]\nread_iolog=a.iolog\n[a]\nrw=read\nsize=${JOB_SIZE}\n"
IO_LOG = "fio version 2 iolog\na add\na open\na read 0 4096\n"


@pytest.mark.parametrize("changed", ["", "JOB_SIZE", "more.inc", "a.iolog"])
def test_all_that_a_job_file_reads_is_part_of_the_plan_and_of_its_data(plan, tmp_path, monkeypatch, changed):
    files = {"mine.fio": JOB, "more.inc": "bs=8k\n", "a.iolog": IO_LOG}
    environment = {"JOB_SIZE": "1m"}

    def planned():
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        monkeypatch.setattr("dbdyno.study.fio_job.known_variables", lambda: environment)
        monkeypatch.setattr("dbdyno.study.fio_rules.known_variables", lambda: environment)
        return plan(("kind", "kind"), *of_kind("fio")[:1], ("queries = 1000", 'job = "mine.fio"'), *NO_SERVER)

    def identity(made):
        spec = next(iter(made.specs.values()))
        return made.study_sha256(), image_key(spec, None, {})

    first = planned()
    before = identity(first)
    assert first.variables == {"JOB_SIZE": "1m"}
    assert {name.rpartition("/")[2] for name in first.own_files["scripts"]} == {"mine.fio", "more.inc"}
    assert [name.rpartition("/")[2] for name in first.file_hashes] == ["a.iolog"]
    assert next(iter(first.specs.values())).workload.data_bytes == 4096
    if not changed:
        assert identity(planned()) == before
        first.check_own_files()
        return
    if changed in files:
        files[changed] = files[changed].replace("8k", "4k").replace("0 4096", "0 8192")
    else:
        environment = {"JOB_SIZE": "2m"}
    after = planned()
    assert not set(identity(after)) & set(before)
    with pytest.raises(HostError, match="changed since the run began"):
        first.check_own_files()


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_plan_and_its_natural_metric(plan, kind):
    made = plan(*of_kind(kind))
    assert {spec.workload.kind for spec in made.specs.values()} == {kind}
    assert made.design.metric == METRICS.get(kind, KINDS[kind].METRIC)
    assert made.seconds_per_trial() > 0


def test_a_study_may_name_another_metric(plan):
    made = plan(*of_kind("ingest"), ("blocks = 6", 'blocks = 6\nmetric = "seconds_real"'))
    assert made.design.metric == "seconds_real"


def test_new_orders_come_of_a_load_that_has_them(plan):
    for kind in ("oltp", "tpcc"):
        fields = ['mix = "payment"'] if kind == "tpcc" else []
        made = plan(*of_kind(kind, *fields))
        assert made.design.metric == "queries_per_second"
        why = why_metric_is_useless("new_orders_per_minute", made.specs.values())
        assert why == f"{kind} does not report it; judge by queries_per_second"
    made = plan(*of_kind("tpcc"))
    assert why_metric_is_useless("new_orders_per_minute", made.specs.values()) == ""


def keys(plan, kind, field, levels):
    made = plan(*of_kind(kind, f"{field} = {levels}"), ('["hdd-7200", "ssd-sata"]', '"ssd-sata"'), DESIGN)
    return {image_key(spec, "a server", {}) for spec in made.specs.values()}


DESIGN = ('baseline = { device = "hdd-7200" }\n', "")
SHAPES_DATA = [
    ("slap", "int_cols", "[1, 2]"),
    ("slap", "initial_rows", "[10, 20]"),
    ("smack", "rows", "[1000, 2000]"),
    ("smack", "row_size", '["1KiB", "2KiB"]'),
    ("oltp", "tables", "[1, 2]"),
    ("oltp", "table_size", "[1000, 2000]"),
    ("oltp", "rand_type", '["uniform", "zipfian"]'),  # as in sysbench, where prepare draws k by it
    ("ingest", "initial_rows", "[0, 1000]"),
    ("tpcc", "warehouses", "[1, 2]"),
    ("ledger", "accounts", "[1000, 2000]"),
]
SHAPES_LOAD = [
    ("slap", "load", '["write", "mixed"]'),
    ("slap", "rate", "[0, 100]"),
    ("smack", "load", '["insert", "select"]'),
    ("smack", "rand_type", '["uniform", "zipfian"]'),
    ("oltp", "load", '["read_only", "read_write"]'),
    ("oltp", "prepared", "[true, false]"),
    ("ingest", "rows_per_commit", "[1, 100]"),
    ("tpcc", "mix", '["new_order", "payment"]'),
    ("ledger", "blob_share", "[0, 10]"),
    ("bulk", "table_size", "[1000, 2000]"),
    ("script", "ignore_errors", '["none", "1213,1205"]'),
    ("replay-log", "speed", "[1, 2]"),
]


@pytest.mark.parametrize(("kind", "field", "levels"), SHAPES_DATA)
def test_what_shapes_the_data_needs_data_of_its_own(plan, kind, field, levels):
    assert len(keys(plan, kind, field, levels)) == 2


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize(("kind", "field", "levels"), SHAPES_LOAD)
def test_what_shapes_the_load_shares_its_data(plan, kind, field, levels):
    assert len(keys(plan, kind, field, levels)) == 1


def test_inserts_with_ids_of_their_own_start_from_empty_tables(plan):
    loads = '["insert", "delete"]'
    assert len(keys(plan, "oltp", "load", loads)) == 1
    assert len(keys(plan, "oltp", "auto_inc = false\nload", loads)) == 2


def test_a_log_and_its_dump_are_known_by_their_hashes_and_kept_nowhere(plan, tmp_path, script):
    """They may hold secrets."""
    dump = tmp_path / "dump.sql"
    dump.write_text("CREATE TABLE secret (id INT);\n")
    changes = of_kind("replay-log", 'setup = "dump.sql"')
    made = plan(*changes)
    assert made.own_files["scripts"] == {}
    assert made.file_hashes == {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in (script, dump)}
    header = made.header({})
    assert "secret" not in header.to_toml().decode()
    assert header.study_without_paths()["files"] == {path.name: made.file_hashes[str(path)] for path in (script, dump)}
    keys_before = {image_key(spec, "a server", {}) for spec in made.specs.values()}
    made.check_own_files()
    dump.write_text("CREATE TABLE other (id INT);\n")
    again = plan(*changes)
    assert again.study_sha256() != made.study_sha256()
    assert keys_before.isdisjoint(image_key(spec, "a server", {}) for spec in again.specs.values())
    with pytest.raises(HostError, match=r"dump\.sql has been changed since the run began"):
        made.check_own_files()


def test_constants_of_a_script_shape_its_data(plan, script):
    script.write_text(":rows = 1000\n-- setup:\nCREATE TABLE t (id INT);\n-- name: a\nSELECT 1;\n")
    assert len(keys(plan, "script", "set", '["rows=10", "rows=20"]')) == 2
    assert len(keys(plan, "script", "weights", '["a=1", "a=2"]')) == 1


def test_scripts_are_known_by_their_content(plan, tmp_path, script):
    (tmp_path / "same.sql").write_text(script.read_text())
    (tmp_path / "other.sql").write_text("SELECT 2;\n")
    files = '["mine.sql", "same.sql", "other.sql"]'
    changes = [(old, new.replace('"mine.sql"', files)) for old, new in of_kind("script")]
    made = plan(*changes, ('["hdd-7200", "ssd-sata"]', '"ssd-sata"'), DESIGN)
    assert [treatment.label for treatment in made.design.treatments] == ["mine.sql", "same.sql", "other.sql"]
    assert [spec.workload.file for spec in made.specs.values()] == [
        str(tmp_path / name) for name in ("mine.sql", "same.sql", "other.sql")
    ]
    one, two, three = (image_key(spec, "a server", {}) for spec in made.specs.values())
    assert one == two != three


def test_a_script_is_part_of_the_identity_and_may_not_change_under_a_run(plan, script):
    made = plan(*of_kind("script"))
    assert made.own_files["scripts"] == {str(script): "SELECT 1;\n"}
    made.check_own_files()
    script.write_text("SELECT 2;\n")
    assert plan(*of_kind("script")).study_sha256() != made.study_sha256()
    with pytest.raises(HostError, match=r"mine\.sql has been changed since the run began"):
        made.check_own_files()
    script.unlink()
    with pytest.raises(HostError, match=r"mine\.sql: can't be read: No such file or directory"):
        made.check_own_files()
