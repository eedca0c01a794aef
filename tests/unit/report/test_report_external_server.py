"""What is said of servers that ran already."""

from dataclasses import replace

from dbdyno.report.notes import external_server_lines
from tests.unit.report.conftest import build

ANEW, ONCE = {"loaded": "anew for each trial"}, {"loaded": "once, as the load only reads"}


def with_servers(given):
    """A run whose treatments observed these: id -> (server, data)."""
    run = build(blocks=2, void_block=0, rates=dict.fromkeys(given, 400.0), pairs=[])
    trials = []
    for trial in run.trials:
        server, data = given[trial.treatment]
        trials.append(replace(trial, observed={"server": server, "data": data}))
    return replace(run, trials=trials)


def running(process, *, local):
    return {"started_by": "others", "process": process, "local": local}


def test_nothing_is_said_of_servers_of_our_own_or_of_odd_folders():
    assert external_server_lines(with_servers({"t1": ({"version": "10"}, {"from": "tree"}), "t2": ("odd", 1)})) == []


def test_where_the_process_is_watched_only_what_is_below_is_unknown():
    lines = external_server_lines(with_servers({"t1": (running("found", local=True), ANEW)}))
    assert lines == [
        "The server is external and was not restarted between trials: what it keeps in memory stayed warm.",
        "The data was loaded anew for each trial, and dropped at the end.",
        "The server's disks, filesystem and memory limit are unknown.",
    ]


def test_which_trials_started_from_fresh_data_and_what_nobody_saw_is_told():
    given = {"t1": (running("unknown", local=False), ANEW), "t2": (running("unknown", local=False), ONCE)}
    lines = external_server_lines(with_servers(given))
    assert "The data of hdd-7200 / mq-deadline was loaded anew for each trial, and dropped at the end." in lines
    assert "The data of hdd-7200 / none was loaded once, as the load only reads, and dropped at the end." in lines
    assert lines[-2].startswith("Facts about host and processors are about the load")
    assert lines[-1] == (
        "These are unknown, too, because its process is elsewhere: the server's CPU, and the interference that trials "
        "met; no block was repeated for that."
    )
