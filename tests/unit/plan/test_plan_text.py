"""A plan in words and as JSON."""

import json

from dbdyno.cli.plan_text import plan_as_dict, plan_as_text
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
