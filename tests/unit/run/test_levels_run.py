"""A whole run of a study with named levels, on a scripted host: its verdict, and what its report says of the levels."""

import json

from dbdyno.analysis.analyse import analyse
from dbdyno.store.run_folder import read_run
from tests.scripted import perform
from tests.unit.report.rendered import as_json, as_page, as_text

LEVELS = """\
[levels]
factor = "advice"
[levels.ours]
innodb_io_capacity = 200
[levels."the vendor's"]
innodb_io_capacity = 2000
scheduler = "none"
"""


def test_named_levels_are_one_factor_with_one_verdict(script, plan, into):
    made = plan(
        ('["hdd-7200", "ssd-sata"]', '"ideal"'),
        ('baseline = { device = "hdd-7200" }\n', 'baseline = { advice = "ours" }\n'),
        ("blocks = 6\n", f"blocks = 6\n{LEVELS}"),
    )
    script.rate = lambda block, treatment: (200.0 if treatment == "t2" else 100.0) + 0.1 * block
    assert perform(script, made, into).how == "done"
    run = read_run(into)
    assert run.design == made.design, "what the levels give is kept in the run folder"
    (verdict,) = analyse(run).verdicts
    assert (verdict.baseline_id, verdict.level_id, verdict.verdict) == ("t1", "t2", "faster")

    text = as_text(run, analyse(run))
    assert "the vendor's" in text
    assert "the vendor's: innodb_io_capacity 2000, scheduler none" in text
    assert "ours: innodb_io_capacity 200" in text
    told = json.loads(as_json(run, analyse(run)))
    assert told["levels"]["advice"]["the vendor's"] == {
        "server.settings.innodb_io_capacity": "2000",
        "stack.scheduler": "none",
    }
    assert [row["label"] for row in told["treatments"]] == ["ours", "the vendor's"]
    assert "innodb_io_capacity 2000, scheduler none" in as_page(run, analyse(run))
    assert "scheduler mq-deadline" not in run.setup, "not all treatments have what a level gives"
