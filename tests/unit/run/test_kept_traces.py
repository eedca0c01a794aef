"""``run --keep-traces``: which plans allow it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dbdyno.errors import UserError
from dbdyno.plan.plan import make_plan
from dbdyno.run.preflight import WITHOUT, keeping_traces
from dbdyno.study.load import load_study


def test_a_plan_on_block_devices_keeps_them(write_study):
    plan = make_plan(load_study(write_study()))
    assert (plan.keep_traces, keeping_traces(plan).keep_traces) == (False, True)


def standing_on(plan, kind, devices=1):
    stack = SimpleNamespace(kind=kind, devices=devices)
    return replace(plan, specs={**plan.specs, "t1": SimpleNamespace(stack=stack)})


@pytest.mark.parametrize(("kind", "words"), WITHOUT.items())
def test_without_a_block_device_there_is_nothing_to_keep(write_study, kind, words):
    plan = make_plan(load_study(write_study()))
    with pytest.raises(UserError, match=f"stands on {words}, not on a block device of its own; leave it out"):
        keeping_traces(standing_on(plan, kind))
    with pytest.raises(UserError, match="stands on 2 devices; one can be traced"):
        keeping_traces(standing_on(plan, "emulated", 2))
