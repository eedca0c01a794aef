"""Sweeps: kept results, an end before their time, the same again."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from dbdyno.errors import UserError
from dbdyno.simulation import sweep
from dbdyno.simulation.sweep import BRIEF_FROM, Simulators, combinations

JOBS = {"size_bytes": 1 << 30, "duration_s": 0.2, "device": "hdd-15k", "kernel": "6.x",
        "load": {"kind": "jobs", "jobs": [{}]}}  # fmt: skip
COMMAND = [sys.executable, "-m", "dbdyno.cli.main", "simulate", "--rw", "randread", "--iodepth", "32"]


def points(seeds=4, **changes):
    return combinations(JOBS | changes, {}, range(1, seeds + 1))


def outcomes(asked, results=None, said=lambda _: None):
    found = dict(sweep.simulated(asked, results, said))
    return [found[place].outcome for place in range(len(asked))]


def test_the_same_again_and_kept_results_are_not_simulated_again(tmp_path, monkeypatch):
    results = tmp_path / "results.jsonl"
    first = outcomes(points(3), results)
    assert first == outcomes(points(3))
    content = results.read_bytes()
    results.write_bytes(content[:-50])
    left = []
    one = Simulators.begin
    monkeypatch.setattr(Simulators, "begin", lambda by, point: left.append(point) or one(by, point))
    assert outcomes(points(4), results)[:3] == first
    assert len(left) == 2, "the one whose line was cut off, and the new one"
    assert len([json.loads(line) for line in results.read_text().splitlines()]) == 4


def test_another_file_is_left_alone(tmp_path):
    other = tmp_path / "letter"
    for content in ("Dear", "Dear\nfriend\n"):
        other.write_text(content)
        with pytest.raises(UserError, match="name another file"):
            outcomes(points(1), other)
        assert other.read_text() == content


def test_what_is_wrong_with_a_point_names_its_option():
    with pytest.raises(UserError, match=r"^--size: a disk of"):
        outcomes(points(1, size_bytes=1 << 50))


def test_a_failure_outside_stops_the_points_at_work():
    def interrupted(_progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outcomes(points(8, duration_s=1e6), said=interrupted)  # they would take hours


def test_killed_and_gone_on_with(tmp_path):
    results = tmp_path / "r.jsonl"
    command = [*COMMAND, "--seconds", "5s", "--repeat", "60", "--into", str(results), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not results.exists() or results.read_bytes().count(b"\n") < 3:
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    kept = results.read_bytes()
    kept = kept[: kept.rfind(b"\n") + 1]
    subprocess.run(command, check=True, capture_output=True)
    content = results.read_bytes()
    assert content.startswith(kept)
    keys = [json.loads(line)["key"] for line in content.splitlines()]
    assert len(keys) == len(set(keys)) == 60


def test_ctrl_c_ends_it_at_once():
    command = [*COMMAND, "--seconds", "100h"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ})
    assert b"simulated" in process.stderr.readline(), "it says how far it is, so it is at work"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=180)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err


def test_of_many_points_what_is_large_is_in_the_file_only(tmp_path):
    results = tmp_path / "r.jsonl"
    asked = points(BRIEF_FROM + 1, duration_s=0.01)
    first = outcomes(asked, results)
    assert "histogram" not in json.dumps(first)
    assert "histogram" in results.read_text().splitlines()[-1]
    assert outcomes(asked, results) == first


def test_a_point_that_is_asked_for_twice_is_simulated_once(tmp_path):
    results = tmp_path / "r.jsonl"
    first, second = outcomes(points(1) * 2, results)
    assert first == second
    assert outcomes(points(1) * 2, results) == [first, second]
    assert len(results.read_text().splitlines()) == 1
