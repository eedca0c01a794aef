"""``dbdyno simulate --from RUN``: what a run's recorded load would have done under its treatments."""

import json
from dataclasses import replace

import pytest

from dbdyno.model.design import Comparison, Design, Factor, Treatment
from dbdyno.store.records import Run, Trial
from tests.run_folders import written

HEAD = """\
# block trace by dbdyno-probe, in blkparse's format; times are seconds since it began
# device: loop0 7,0, 1048576 sectors of 512 bytes
# began: 1795467780 s since 1970, 5000000000 ns of CLOCK_MONOTONIC
# lost_events: 0
"""
DEVICES, BUSY_S, PERIOD_S = ["hdd-7200", "ssd-sata"], 0.008, 0.01
REQUESTS = 200


def trace():
    """One process that reads 4 KiB at random, waits 8 ms for each and thinks for 2 ms."""
    lines = []
    for number in range(REQUESTS):
        at_s, place = number * PERIOD_S, number * 7919 % 100_000 * 8
        for offset_s, what in ((0, "Q"), (1e-5, "D"), (BUSY_S, "C")):
            who = "0]" if what == "C" else "fio]"
            lines.append(f"7,0 0 {len(lines) + 1} {at_s + offset_s:.9f} 4711 {what} RS {place} + 8 [{who}\n")
    return HEAD + "".join(lines)


def trial(treatment, device, scheduler):
    return Trial(
        id=f"b0001a1p001-{treatment}", block=1, attempt=1, position=1, treatment=treatment,
        started_at="2026-01-01T00:00:00Z", metrics={"iops": 100.0},
        observed={
            "device": {"kind": "emulated", "model": device, "size_bytes": 512 << 20},
            "queue": {"scheduler": scheduler, "nr_requests": "128"},
        },
        block_trace={
            "recorded": {"full": False, "failed": None, "measured_s": [0.5, 10.0]}, "lost": 0,
            "queue_ms": {"all": {"mean": 0.01}}, "device_ms": {"all": {"mean": 7.99}},
        },
    )  # fmt: skip


@pytest.fixture
def run():
    levels = [(device, "none") for device in DEVICES] + [("ssd-sata", "adios"), ("ssd-sata", "mq-deadline")]
    treatments = [
        Treatment(f"t{place}", {"device": device, "scheduler": scheduler})
        for place, (device, scheduler) in enumerate(levels, 1)
    ]
    design = Design(
        treatments=treatments, baseline="t1", comparisons=[Comparison("t1", "t2")], blocks=1, margin=0.05,
        metric="iops", seed=1,
        factors=[Factor("device", "stack", DEVICES), Factor("scheduler", "stack", ["none", "adios", "mq-deadline"])],
    )  # fmt: skip
    study = {"stack": {"device": DEVICES, "size": "512MiB"}, "queue": {"iosched": {}}}
    trials = [trial("t1", "hdd-7200", "none"), trial("t2", "ssd-sata", "none")]
    return Run("Two drives", "", design, trials, [], {}, {}, "interrupted", [], study=study)


def columns(rate, wait):
    return {"t_s": [0.05, 0.15, 0.25], "r/s": [1.0, rate, rate], "r_await": [0.0, wait, wait],
            "w/s": [0.0, 0.0, 0.0], "w_await": [0.0, 0.0, 0.0]}  # fmt: skip


@pytest.fixture
def folder(tmp_path, run):
    series = {one.id: {"block_device": columns(*figures)}
              for one, figures in zip(run.trials, [(100.0, 8.0), (400.0, 0.5)], strict=True)}  # fmt: skip
    path = written(tmp_path / "run", run, series)
    (path / "trials" / run.trials[0].id / "requests.blkparse").write_text(trace())
    return path


def test_each_treatment_is_predicted_beside_what_it_measured(dbdyno, folder):
    code, out, err = dbdyno("simulate", "--from", folder, "--json")
    assert (code, err) == (0, "")
    assert dbdyno("simulate", "--from", folder, "--json")[1] == out
    found = json.loads(out)
    assert (found["simulated"], found["replay"]) == (True, "closed")
    assert found["source"] == {"treatment": "t1", "label": "hdd-7200 / none", "trial": "b0001a1p001-t1"}
    slow, fast, unmeasured = found["treatments"]
    assert slow["measured"] == pytest.approx({"requests_per_s": 100, "await_ms": 8.0, "latency_ms_mean": 8.0})
    assert fast["measured"]["requests_per_s"] == pytest.approx(400)
    assert unmeasured["measured"] is unmeasured["predicted_over_measured"] is None
    # A process that thinks for 2 ms does 500 a second at most, and an SSD takes a tenth of a millisecond.
    assert 450 < fast["predicted"]["requests_per_s"] < 500
    assert fast["measured_over_source"]["requests_per_s"] == pytest.approx(4)
    for one, other in ((slow, "measured"), (fast, "measured")):
        ratio = one["predicted"]["requests_per_s"] / one[other]["requests_per_s"]
        assert one["predicted_over_measured"]["requests_per_s"] == pytest.approx(ratio)
    assert list(found["not_simulated"]) == ["ssd-sata / adios"]
    reads = [one["outcome"]["reads"]["requests"] for one in found["points"]]
    assert reads == [REQUESTS - 50] * 3  # what came before measuring began is left out


def test_the_answer_comes_first_in_few_lines_and_on_a_page(dbdyno, folder, tmp_path):
    code, out, err = dbdyno("simulate", "--from", folder, "--html", tmp_path / "page.html")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) <= 25
    flat = " ".join(out.split())
    assert "Simulated: the load of hdd-7200 / none would have come to 4" in flat
    assert "times as under its own (measured: 4 times). Simulated over measured: " in flat
    assert "Not simulated: ssd-sata / adios (scheduler adios is none of the simulated kernel 6.x, which has" in flat
    assert "Assumed: processes depend on each other and think between requests as recorded" in flat
    assert "the page cache merges, reads ahead" in (tmp_path / "page.html").read_text()


def test_an_open_replay_compares_waits(dbdyno, folder):
    out = " ".join(dbdyno("simulate", "--from", folder, "--replay", "open")[1].split())
    assert "ms under ssd-sata / " in out
    assert "await ms over hdd-7200 / none" in out


def test_a_trace_that_lacks_something_says_so(dbdyno, tmp_path, run):
    first = run.trials[0]
    old = replace(first, block_trace={"recorded": {"full": True, "failed": None}, "lost": 3})
    path = written(tmp_path / "old", replace(run, trials=[old]))
    (path / "trials" / first.id / "requests.blkparse").write_text(trace())
    found = json.loads(dbdyno("simulate", "--from", path, "--json")[1])
    assert [word in " ".join(found["remarks"]) for word in ("is full", "3 events")] == [True] * 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--treatment", "t9"], "--treatment 't9' is none of this run's; there are t1 (hdd-7200 / none), t2"),
        (["--treatment", "t2"], "has no trace of ssd-sata / none; name another by --treatment"),
        (["--device", "nvme"], "--from takes load, devices and queues from the run; leave out --device"),
        (["--rw", "read", "--repeat", "2"], "leave out a job and --repeat"),
        (["--replay", "shut"], "--replay is open or closed, not shut"),
    ],
)
def test_what_can_t_be_is_said_with_the_way_out(dbdyno, folder, more, said):
    code, out, err = dbdyno("simulate", "--from", folder, *more)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


def test_a_run_without_traces_a_simulated_one_and_no_run(dbdyno, tmp_path, run):
    bare = written(tmp_path / "bare", run)
    simulated = written(tmp_path / "simulated", replace(run, study={"stack": {"kernel": "6.x"}}))
    for path, said in (
        (bare, "has no block traces; measure it by dbdyno run STUDY --into DIR --keep-traces"),
        (simulated, "is a simulated run; a prediction needs the trace of a measured one"),
        (tmp_path, "holds run folders and is none; name one of them, such as "),
    ):
        code, _, err = dbdyno("simulate", "--from", path)
        assert code == 2
        assert said in " ".join(err.split())
    assert "--treatment is for --from RUN" in dbdyno("simulate", "--rw", "read", "--treatment", "t1")[2]
