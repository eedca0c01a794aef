"""Every verb of an attached disk says as JSON what it has done."""

import json
import sys

import pytest

from dbdyno.cli import main
from tests.support import dbdyno

pytestmark = pytest.mark.host

# What is typed, and what the answer has among others.
STEPS = [
    ("mode slow instant", {"mode": "instant"}),
    ("snapshot slow full", {"snapshot": "full"}),
    ("restore slow full", {"restored": "full"}),
    ("forget slow full", {"forgotten": "full"}),
    ("stats slow --reset", {"model": "hdd-7200", "mode": "instant"}),
    ("trace slow {tmp}/t.csv", {"file": "{tmp}/t.csv"}),
    ("trace slow --stop", {"file": "{tmp}/t.csv", "dropped": 0}),
    ("power-cut slow", {"write_cache": "volatile"}),
    ("power-on slow", {"power": "on"}),
    ("fault latency slow --extra 5ms", {}),
    ("fault eio slow --every 7", {}),
    ("fault stuck slow --for 1s", {}),
    ("fault clear slow", {"faults": []}),
    ("fault gone slow", {"unflushed_sectors": 0}),
    ("fault clear slow", {"faults": []}),
]


def test_what_was_done_to_a_disk(state, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(state))

    def asked(typed):
        """In this process: a score of programs would take a score of starts."""
        monkeypatch.setattr(sys, "argv", ["dbdyno", "disk", *typed.format(tmp=tmp_path).split(), "--json"])
        with pytest.raises(SystemExit) as ended:
            main.main()
        said = capsys.readouterr()
        assert ended.value.code == 0, f"{typed}: {said.err}"  # a note says there what this host refuses a disk
        return json.loads(said.out)

    attaching = dbdyno("disk", "attach", "hdd-7200", "--size", "64M", "--name", "slow", "--json", state=state)
    assert attaching.returncode == 0, attaching.stderr
    attached = json.loads(attaching.stdout)
    try:
        assert attached["name"] == "slow"
        assert attached["device"].startswith("/dev/loop")
        for typed, expected in STEPS:
            answer = asked(typed)
            assert (answer["schema"], answer["name"]) == (1, "slow"), typed
            assert json.loads(json.dumps(expected).replace("{tmp}", str(tmp_path))).items() <= answer.items(), typed
        assert asked("list")[0]["device"] == attached["device"]
    finally:
        assert asked("detach slow") == {"schema": 1, "detached": attached["device"]}
