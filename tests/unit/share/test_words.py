"""What may leave: words that dbdyno knows, and plain numbers."""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.share.words import Words, is_known, vocabulary

KNOWN = [
    "hdd-7200", "mq-deadline", "innodb_flush_log_at_trx_commit", "O_DIRECT", "512MiB", "134217728",
    "9223372036854775807",
    "rw,relatime,data=ordered", "10.11.14-MariaDB-0+deb12u2", "Debian GNU/Linux 12 (bookworm)", "r/s", "0.0009765625",
    "device of data", "2026-11-29T19:19:02+00:00", "index_merge=on,semijoin=off", "b0001a1p001-t1", "",
]  # fmt: skip
NAMES = [
    "db-prod-7.acme.internal", "jdoe", "/home/jdoe/billing.sql", "/data/log", "S4EWNX0M123456Z", "83640127593",
    "10.20.30.40", "10.20.30.40:3306", "fe80::1ff:fe23", "00:16:3e:5e:6c:01", "jo@acme.example", "~/data", "C:\\data",
    "mysql://jo:secret@db/shop", "SELECT iban FROM customers", "select count(*) from t where `x` = 'Jo'", "data\nlog",
    "\x1b[2J", "\u202edata", "größe", "data" * 500, "5843d8475120241667a7ce0f8a1abb6c9b43a273", "1.2.3.4", "data/log",
]  # fmt: skip


@pytest.mark.parametrize("text", KNOWN)
def test_words_of_dbdyno_stay(text):
    words = Words()
    assert words.text(text) == text
    assert words.replacements() == []


@pytest.mark.parametrize("text", NAMES)
def test_anything_else_gets_a_stand_in(text):
    words = Words()
    assert words.text(text, "observed.device") == "name-1"
    assert words.text(text) == "name-1"
    assert [row["place"] for row in words.replacements()] == ["observed.device"]


def test_a_version_keeps_its_number():
    words = Words()
    texts = ["6.1.0-18-acme", "6.1.0-18-abc", "6.1.0-18", "6.1.0-18-acme"]
    assert [words.text(text) for text in texts] == ["6.1.0-18", "6.1.0-18 (1)", "6.1.0-18 (2)", "6.1.0-18"]


def test_a_host_is_a_host_even_where_its_name_is_a_word():
    words = Words()
    words.name_hosts(["server", "db1"])
    assert words.document({"host": "server", "a": ["db1", "server"]}) == {"host": "host-1", "a": ["host-2", "host-1"]}


def test_what_names_a_thing_is_left_out_and_prose_too():
    document = {"serial": "buffer", "cause": "buffer", "clients": float("inf"), "queries": 3, "list": [float("nan"), 1]}
    assert Words().document(document) == {"cause": "left out", "queries": 3, "list": [1]}


def test_the_label_of_a_treatment_is_its_levels():
    words = Words()
    assert words.text("hdd-7200 / acme") == "hdd-7200 / name-1"
    assert words.text("device of acme") == "device of name-1"


def test_a_text_that_was_let_out_stays():
    assert Words(["acme-load"]).text("acme-load") == "acme-load"


def test_the_processor_keeps_its_model():
    words = Words()
    document = {"cpu": {"model": "AMD EPYC 7763 64-Core Processor"}, "title": "EPYC ab7763cd"}
    assert words.document(document) == {"cpu": document["cpu"], "title": "name-1"}


@given(st.lists(st.text(max_size=40) | st.sampled_from(NAMES + KNOWN), max_size=12))
def test_stand_ins_tell_texts_apart_and_hold_known_words_alone(texts):
    words = Words()
    left = [words.text(text) for text in texts]
    assert [texts.index(text) for text in texts] == [left.index(text) for text in left]
    assert all(
        is_known(text) or re.fullmatch(r"device of name-\d+|name-\d+( / name-\d+)*", text)
        for text in left
        if " / " not in text
    )
    again = Words()
    assert [again.text(text) for text in left] == left


def test_the_vocabulary_holds_no_path_and_no_address():
    assert {"ssd", "sata", "innodb", "ext4", "zipfian", "kyber"} <= vocabulary()
    assert all(re.fullmatch("[a-z0-9]+", word) for word in vocabulary())


ROOT = Path(__file__).parents[3]
ASKING = {"value_of", "part_of", "layer_of", "figure"}  # functions that look a name up in what a trial holds


def calls(*rooms):
    for room in rooms:
        for file in sorted((ROOT / "python/dbdyno" / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    yield node, getattr(node.func, "attr", getattr(node.func, "id", ""))


def test_what_an_analysis_looks_up_in_a_trial_may_leave():
    """Else a shared result would lack it, and its report give other reasons than the run's own."""
    looked_up = {
        argument.value
        for call, name in calls("analysis", "report", "store", "model")
        if name in ASKING
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }
    assert {"guest", "cpu_some", "lateness_ns"} <= looked_up
    assert [name for name in sorted(looked_up) if not is_known(name)] == []


def test_what_a_layer_reads_back_may_leave():
    read_back = {
        key.value
        for call, name in calls("stack", "servers")
        if name == "raised"
        for table in ast.walk(call)
        if isinstance(table, ast.Dict)
        for key in table.keys
        if isinstance(key, ast.Constant)
    }
    assert {"before", "files"} <= read_back
    assert [name for name in sorted(read_back) if not is_known(name)] == []


def test_the_gauges_of_drives_may_leave():
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "crates/dbdyno-device/src").rglob("*.rs")]
    bodies = [body for text in sources for body in re.findall(r"fn gauges.*?\n    }", text, re.DOTALL)]
    gauges = {name for body in bodies for name in re.findall(r'\("([a-z_]+)"', body)}
    assert {"queue_depth", "folded_bytes"} <= gauges
    assert [name for name in sorted(gauges) if not is_known(name)] == []
