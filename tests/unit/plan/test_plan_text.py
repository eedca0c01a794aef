"""A plan in words and as JSON."""

import json

import pytest

from dbdyno.cli.ending_text import ending_text
from dbdyno.cli.plan_text import plan_as_dict, plan_as_text
from dbdyno.plan.ending import Ending
from dbdyno.stack.capabilities import Capability

TWO_BY_TWO = ('scheduler = "mq-deadline"', 'scheduler = ["mq-deadline", "none"]')
LACKING = [Capability("FUSE", ok=False, detail="no /dev/fuse", remedy="modprobe fuse")]
REAL = (
    ('["hdd-7200", "ssd-sata"]', '["/dev/disk/by-id/ata-A_1", "/dev/disk/by-id/ata-B_2"]'),
    ('size = "1GiB"\n', ""),
    ('baseline = { device = "hdd-7200" }', ""),
)


def test_text(snapshot, plan):
    assert plan_as_text(plan(TWO_BY_TWO), []) == snapshot


def test_text_of_whole_plots(snapshot, plan):
    hard = ("blocks = 6", 'blocks = 3\nhard_to_change = ["device"]')
    assert plan_as_text(plan(TWO_BY_TWO, hard), []) == snapshot


def test_text_of_many_blocks_on_a_host_that_can_not(snapshot, plan):
    assert plan_as_text(plan(blocks=40, seed=3), LACKING) == snapshot


def test_text_says_first_what_is_erased(snapshot, plan):
    assert plan_as_text(plan(*REAL, ("queries = 1000", 'duration = "10s"')), []) == snapshot


def test_what_filesystems_without_a_device_or_by_fuse_touch(plan):
    said = plan_as_text(plan(('"ext4"', '["zfs", "tmpfs"]')), [])
    assert "created: a tmpfs of at most 1 GiB in memory; gone afterwards" in said
    assert "started: zfs-fuse in a mount namespace of its own, which knows no other pool; ended afterwards" in said
    assert "created: 1 emulated disk in memory (1 GiB); gone afterwards" in said


def test_a_block_trace_is_told_beforehand(plan):
    told = "created: a trace instance in tracefs, of the device's requests only; gone afterwards"
    trace = ("[design]", "[probes]\ntrace = true\n[design]")
    assert told in plan_as_text(plan(trace), [])
    assert told not in plan_as_text(plan(), [])
    assert told not in plan_as_text(plan(trace, ('"ext4"', '"tmpfs"')), [])


def test_text_where_the_data_decide_the_number_of_blocks(snapshot, plan):
    assert plan_as_text(plan(("blocks = 6", 'max_blocks = 20\nbudget = "2h"')), []) == snapshot


ENDINGS = {
    Ending(
        "decided", 40
    ): "10 to 40 blocks: looked at after 10, 15, 20, 30, 40; stops when every comparison is decided",
    Ending("precise", 10, 0.02): "blocks (10): too few to look at them before the last; wanted is "
    "that every interval reaches at most 2 % to either side",
    Ending("precise", 12, 0.02): "10 to 12 blocks: looked at after 10, 12; stops when every interval reaches at most "
    "2 % to either side",
    Ending("open", 1000): "blocks: looked at after each from 6 on; stops when every comparison is decided",
    Ending("blocks", 8, None, 5400.0): "blocks (8); none is begun that would end after 1 h 30 min",
}


@pytest.mark.parametrize(("ending", "text"), ENDINGS.items(), ids=str)
def test_when_it_stops(plan, ending, text):
    assert ending_text(plan(ending=ending).design) == text
    assert text in plan_as_text(plan(ending=ending), [])


def test_json(snapshot, plan):
    made = plan_as_dict(plan(TWO_BY_TWO), LACKING)
    assert json.dumps(made, indent=1) == snapshot


def test_json_holds_every_block_in_order(plan):
    made = plan(TWO_BY_TWO, blocks=20)
    blocks = plan_as_dict(made, [])["blocks"]
    assert blocks == [[slot.treatment for slot in made.slots(block, 1)] for block in range(1, 21)]


def test_nothing_that_a_terminal_would_obey(plan):
    made = plan(('"A study"', '"a\\u009b31mb\\u007f"'), ('"Which?"', '"one\\ntwo\\u001b[31m"'))
    text = plan_as_text(made, [])
    assert text.startswith("a?31mb?\none\ntwo?[31m\n")
