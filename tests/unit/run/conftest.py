"""What runs of played trials are asked."""

import os

import pytest

from dbdyno.errors import TrialError
from dbdyno.store.events import Finished, read_events

TWO_BY_TWO = ('scheduler = "mq-deadline"', 'scheduler = ["mq-deadline", "none"]')


def planned(plan, *places):
    """Return the slots of ``(block, attempt)`` places in the plan's order."""
    return [slot for place in places for slot in plan.slots(*place)]


def finished(into):
    return [(event.block, event.attempt, event.treatment) for event in read_events(into) if isinstance(event, Finished)]


def kinds(into):
    return [type(event).__name__.lower() for event in read_events(into)]


def died(text="the server died"):
    return TrialError(text)


def disturbed_first(plan, *places):
    """Return the first trial of each ``(block, attempt)``, to be disturbed."""
    return {(block, attempt, plan.slots(block, attempt)[0].treatment) for block, attempt in places}


@pytest.fixture
def two(plan):
    return plan(blocks=3)


@pytest.fixture
def four(plan):
    return plan(TWO_BY_TWO, blocks=3)


@pytest.fixture
def into(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def states(state, tmp_path):
    assert os.environ["DBDYNO_STATE_DIR"] == str(state)  # what runs in this process is not to be this host's
    return tmp_path / "states"
