"""What a ``[workload]`` leaves out is what the flag of ``dbdyno-load`` stands for, which states it once."""

import json
import subprocess

import pytest

from dbdyno.stack.tools import own_binary
from dbdyno.study.workloads import KINDS, GeneratedSection

GENERATED = {kind: section for kind, section in KINDS.items() if issubclass(section, GeneratedSection)}

# Fields whose flags have other names.
FLAGS = {
    "prepared": "db-ps-mode",
    **{("slap", field): f"auto-generate-sql-{flag}" for field, flag in {
        "load": "load-type", "secondary_indexes": "secondary-indexes", "initial_rows": "write-number",
        "unique_queries": "unique-query-number", "unique_writes": "unique-write-number",
    }.items()},
    ("slap", "int_cols"): "number-int-cols",
    ("slap", "char_cols"): "number-char-cols",
    ("slap", "commit_every"): "commit",
}  # fmt: skip

# By hand 0, as in mysqlslap and sysbench; a study compares trials, so it leaves out how each begins. An ingest would
# fill its table meanwhile.
WARM_UP = {"slap": 0.5, "smack": 0.5, "oltp": 0.5, "tpcc": 0.5, "ledger": 0.5, "script": 0.5, "ingest": 0.0}
# A study bounds the connections that a log may have; by hand the log decides.
DIFFERENT = {("replay-log", "clients")}


@pytest.fixture(scope="module")
def stated() -> dict[str, dict[str, str]]:
    done = subprocess.run([own_binary("dbdyno-load"), "defaults"], capture_output=True, check=True)
    return json.loads(done.stdout)


def as_flag(field: str, value: object) -> str:
    if field == "prepared":
        return "auto" if value else "disable"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


@pytest.mark.parametrize("kind", GENERATED)
def test_a_field_left_out_is_a_flag_left_out(kind, stated):
    known = stated[kind]
    compared = {}
    for field, info in GENERATED[kind].model_fields.items():
        flag = FLAGS.get((kind, field)) or FLAGS.get(field) or field.replace("_", "-")
        if (
            flag in known
            and info.default is not None
            and not info.is_required()
            and (kind, field) not in DIFFERENT
            and field != "warmup"
        ):
            compared[field] = (as_flag(field, info.default), known[flag])
    assert {field: study for field, (study, _) in compared.items()} == {
        field: generator for field, (_, generator) in compared.items()
    }
    assert {"clients", "io_threads"} - {field for of, field in DIFFERENT if of == kind} <= set(compared)


def test_only_the_warm_up_differs_and_on_purpose(stated):
    having = {kind: section.model_fields for kind, section in GENERATED.items() if "warmup" in section.model_fields}
    warm_ups = {kind: fields["warmup"].default for kind, fields in having.items() if kind != "bulk"}
    assert warm_ups == WARM_UP
    assert {known["warmup"] for known in stated.values()} == {"0"}
