"""A plan in words and as JSON."""

import json
import re
from pathlib import Path

import pytest

from dbdyno.cli.plan import plan_as_dict, plan_as_text, stop_rule_text
from dbdyno.plan.stop_rule import StopRule
from dbdyno.stack.capabilities import Capability

TWO_BY_TWO = ('scheduler = "mq-deadline"', 'scheduler = ["mq-deadline", "none"]')
LACKING = [Capability("FUSE", ok=False, detail="no /dev/fuse", remedy="modprobe fuse")]
REAL = (
    ('["hdd-7200", "ssd-sata"]', '["/dev/disk/by-id/ata-A_1", "/dev/disk/by-id/ata-B_2"]'),
    ('size = "1GiB"\n', ""),
    ('baseline = { device = "hdd-7200" }', ""),
)


def named(text):
    """A plan's text with the study's name instead of its path."""
    return re.sub(r"/\S*/study\.toml", "study.toml", text)


def test_text(snapshot, plan):
    assert named(plan_as_text(plan(TWO_BY_TWO), [])) == snapshot


def test_text_of_whole_plots(snapshot, plan):
    hard = ("blocks = 6", 'blocks = 3\nhard_to_change = ["device"]')
    assert named(plan_as_text(plan(TWO_BY_TWO, hard), [])) == snapshot


def test_text_of_many_blocks_on_a_host_that_can_not(snapshot, plan):
    assert named(plan_as_text(plan(blocks=40, seed=3), LACKING)) == snapshot


def test_an_order_that_no_run_need_have_is_called_an_example(plan):
    drawn = plan(seed=None)
    told = f"order from seed {drawn.design.seed}, as an example: each run draws a seed of its own:"
    assert told in plan_as_text(drawn, [])
    assert "example" not in plan_as_text(plan(seed=3), [])


def test_text_says_first_what_is_erased(snapshot, plan):
    assert named(plan_as_text(plan(*REAL, ("queries = 1000", 'duration = "10s"')), [])) == snapshot


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


def test_a_trace_says_where_it_mounts_tracefs(monkeypatch, plan):
    trace = ("[design]", "[probes]\ntrace = true\n[design]")
    for place, said in ((None, True), (Path("/sys/kernel/tracing"), False)):
        monkeypatch.setattr("dbdyno.cli.plan.mounted_tracefs", lambda place=place: place)
        assert ("mounted: tracefs, in the state folder; unmounted" in plan_as_text(plan(trace), [])) == said


def test_text_where_the_data_decide_the_number_of_blocks(snapshot, plan):
    assert named(plan_as_text(plan(("blocks = 6", 'max_blocks = 20\nbudget = "2h"')), [])) == snapshot


STOP_RULES = {
    StopRule(
        "decided", 40
    ): "6 to 40 blocks: looked at after 6, 7, 8, 10, 12, ..., 40; stops when every comparison is decided",
    StopRule("precise", 6, 0.02): "blocks (6): too few to look at them before the last; the goal is "
    "that every interval reaches at most 2 % to either side",
    StopRule(
        "precise", 12, 0.02
    ): "6 to 12 blocks: looked at after 6, 7, 8, 10, 12; stops when every interval reaches at most 2 % to either side",
    StopRule(
        "open", 1000
    ): "blocks: looked at after block 6 and each later one; stops when every comparison is decided; "
    "p and intervals are of the mean, and hold if log ratios are normal",
    StopRule("blocks", 8, None, 5400.0): "blocks (8); none is begun that would end after 1 h 30 min",
}


@pytest.mark.parametrize(("rule", "text"), STOP_RULES.items(), ids=str)
def test_when_it_stops(plan, rule, text):
    assert stop_rule_text(plan(stop_rule=rule).design) == text
    assert text in plan_as_text(plan(stop_rule=rule), [])


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


def test_fast_caches_are_told_beside_those_of_the_drives(plan):
    scaled = ('["hdd-7200", "ssd-sata"]', '["hdd-7200", "ssd-sata", "ssd-sata(slc.scaled=true)"]')
    made = plan(scaled)
    lines = plan_as_text(made, []).splitlines()
    start = lines.index("fast caches, which writes fill:")
    assert lines[start + 1 : start + 4] == [
        "  ssd-sata: 22 GB",
        "  ssd-sata(slc.scaled=true): 47.2 MB; the drive has 22 GB",
        "",
    ]
    told = {one["device"]: (one["bytes"], one["drive_bytes"]) for one in plan_as_dict(made, [])["fast_caches"]}
    assert told == {"ssd-sata": (22 * 10**9, 22 * 10**9), "ssd-sata(slc.scaled=true)": (47234450, 22 * 10**9)}
    assert "fast cache" not in plan_as_text(plan(('["hdd-7200", "ssd-sata"]', '["hdd-7200", "nvme"]')), [])


def of_servers(*names, settings=""):
    listed = ", ".join(f'"{name}"' for name in names)
    return (
        ('["hdd-7200", "ssd-sata"]', f'"hdd-7200"\nserver = [{listed}]'),
        ('innodb_buffer_pool_size = "256M"', f'innodb_buffer_pool_size = "256M"\n{settings}'),
        ('baseline = { device = "hdd-7200" }\n', ""),
    )


def warned(plan):
    shown = plan_as_text(plan, [])
    told = plan_as_dict(plan, [])["warnings"]
    assert all(f"warning: {one}" in shown for one in told)
    return [one for one in told if one.startswith("by default ")]


def test_servers_that_log_differently_by_default_are_named_before_they_are_compared(plan):
    both = ("mariadb-11.8", "mysql-9")
    remedy = "set {} in [server.settings] to compare like with like"
    logs = "by default mysql-9 writes a binary log (log_bin) and mariadb-11.8 does not"
    assert warned(plan(*of_servers(*both))) == [f"{logs}: {remedy.format('log_bin')}"]
    assert warned(plan(*of_servers(*both, settings="log_bin = false"))) == []
    syncs = "mysql-9 syncs its binary log at each commit and mariadb-11.8 leaves syncing its binary log to the kernel"
    has = "mariadb-11.8 has binlog_format MIXED and mysql-9 has binlog_format ROW"
    assert warned(plan(*of_servers(*both, settings="log_bin = true"))) == [
        f"by default {syncs}: {remedy.format('sync_binlog')}",
        f"by default {has}: {remedy.format('binlog_format')}",
    ]
    with_and_without = plan(*of_servers(*both, settings="log_bin = [true, false]"))
    assert any("set sync_binlog in" in one for one in warned(with_and_without))
    assert warned(plan(*of_servers("mariadb-10.11", "mariadb-11.8"))) == []


def test_servers_whose_version_is_not_known_or_that_nobody_compares_warn_of_nothing(plan):
    assert warned(plan(*of_servers("mysql-9", "/nowhere/mysql-5.6"))) == []
