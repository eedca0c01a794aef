"""The operations that Python asks of an emulated disk are those that its process, in Rust, answers."""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from dbdyno.errors import TrialError
from dbdyno.model.cut import SURVIVORS
from dbdyno.stack.disk_client import (
    CUT_ON,
    MODES,
    TRACE_FORMATS,
    CutTaken,
    DiskClient,
    Fault,
    PowerCut,
    Survived,
    TraceEnd,
)

SOURCE = Path(__file__).parents[3] / "crates/dbdyno-disk/src"
GIVEN = {"mode": "model", "file": Path("/f"), "format_": "csv", "spec": Fault("eio"), "folder": Path("/f")}
ANSWER = {"gauges": {}, "file": "/f", "records": 1, "dropped": 0, "followed": True, "cuts": []}
RECORDS = {"power-cut": PowerCut, "fault-gone": PowerCut, "cut": CutTaken, "cut-restore": Survived}
ONLY_FOR_PEOPLE = {"ping", "stop"}  # which no part of dbdyno asks


def block(file, opening):
    """What stands between the braces of an item."""
    text = (SOURCE / file).read_text(encoding="utf-8")
    return re.search(rf"^(?:pub )?{opening} \{{$(.*?)^\}}$", text, re.MULTILINE | re.DOTALL)[1]


def fields_of(body):
    """Field, as it is called on the socket -> whether it must be given."""
    found = re.findall(r"((?:#\[serde\([^\n]*\s+)?)(?:pub )?(\w+): ([\w<>(), ]+?),?$", body, re.MULTILINE)
    return {name: "default" not in serde and not kind.startswith("Option") for serde, name, kind in found}


def operations():
    """Operation -> its fields."""
    variants = re.findall(
        r"^    (\w+) \{(\}|.*?^    \}),$", block("control.rs", "enum ControlRequest"), re.MULTILINE | re.DOTALL
    )
    return {re.sub(r"(?<!^)([A-Z])", r"-\1", name).lower(): fields_of(body) for name, body in variants}


def words(file, opening):
    """The names of an enum's variants, in lower case as serde has them."""
    return {name.lower() for name in re.findall(r"^    (\w+),$", block(file, opening), re.MULTILINE)}


def asked():
    """Operation -> the names of its arguments, from every method."""
    found = {}

    class Recorder(DiskClient):
        def _ask(self, op, _seconds=None, **arguments):
            found[op] = set(arguments)
            record = RECORDS.get(op)
            return dict.fromkeys((field.name for field in fields(record)), 0) if record else ANSWER

    for name, method in inspect.getmembers(Recorder, inspect.isfunction):
        if not name.startswith("_"):
            signature = inspect.signature(method)
            wanted = [one for one, said in signature.parameters.items() if one != "self" and said.default is said.empty]
            method(Recorder(Path("/c")), *(GIVEN.get(one, 0) for one in wanted))
    return found


def test_every_operation_is_one_of_the_disks_and_names_its_fields():
    known, ours = operations(), asked()
    assert set(ours) == set(known) - ONLY_FOR_PEOPLE
    for op, arguments in ours.items():
        assert arguments <= set(known[op]), op
        assert {name for name, must in known[op].items() if must} <= arguments, op


def test_words_and_faults_are_those_of_the_disk():
    assert set(MODES) == words("engine.rs", "enum Mode")
    assert set(TRACE_FORMATS) == words("trace.rs", "enum Format")
    assert set(CUT_ON) == words("content/cut_recorder.rs", "enum CutOn")
    kinds = block("content/cut_recorder.rs", "enum Survivors")
    kinds = re.sub(r'#\[serde\(rename = "(.*)"\)\]\s+\w+', r"\1", kinds)
    assert set(SURVIVORS) == {name.lower() for name in re.findall(r"^    ([\w-]+),$", kinds, re.MULTILINE)}
    assert {field.name for field in fields(Fault)} == set(fields_of(block("faults.rs", "struct FaultSpec")))


@pytest.mark.parametrize(
    ("record", "file", "opening"),
    [
        (CutTaken, "content/cut_recorder.rs", "struct CutRecord"),
        (Survived, "content/cut_recorder.rs", "struct Survived"),
    ],
)
def test_cuts_have_the_fields_that_the_disk_gives(record, file, opening):
    assert [field.name for field in fields(record)] == list(fields_of(block(file, opening)))


def test_answers_have_the_fields_that_the_disk_gives():
    steered, traced = ((SOURCE / file).read_text(encoding="utf-8") for file in ("steer.rs", "trace.rs"))
    assert all(f'"{field.name}": ' in steered for field in fields(PowerCut))
    assert all(f'"{field.name}": ' in traced for field in fields(TraceEnd))


def test_a_disk_that_is_gone_is_named_with_the_operation(tmp_path):
    with pytest.raises(TrialError, match=r"^the disk, snapshot: no answer: .*No such file"):
        DiskClient(tmp_path / "none", "the disk").snapshot("s")
