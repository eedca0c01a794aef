"""``dbdyno simulate``: the answer first, few lines, what is odd about a trace, JSON, a page."""

import json
import re

import pytest

TRACE = "time_s,offset,size,op,process,response_us\n" + "".join(
    f"{at / 500:.3f},{at * 7919 % 100_000 * 4096},4096,{'RW'[at % 2]},1,200\n" for at in range(500)
)


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


def without_progress(err):
    """What went wrong: on a slow or busy host a sweep also says how far it is."""
    return re.sub(r"\d+ of [\d,]+ points? simulated.*\n", "", err)


def test_the_answer_comes_first_in_few_lines(dbdyno):
    code, out, err = dbdyno(
        *[
            "simulate",
            "--rw",
            "randread",
            "--iodepth",
            "4",
            "--device",
            "hdd-15k,ssd-sata",
            "--scheduler",
            "none,mq-deadline",
            "--seconds",
            "1",
        ]
    )
    assert (code, without_progress(err)) == (0, "")
    lines = out.splitlines()
    assert len(lines) <= 25
    assert re.match(
        r"Simulated: ssd-sata: [\d,]+ requests/s, the most; hdd-15k: [\d,]+ \([\d.]+ times\). scheduler", lines[2]
    )
    assert "Closed: each client waits for its answer" in out
    assert "r/s  w/s  rkB/s  wkB/s  avgrq-sz  aqu-sz" in re.sub(" +", "  ", out)


def test_the_same_twice_as_json(dbdyno):
    command = ["simulate", "--rw", "randrw", "--device", "hdd-15k", "--seconds", "1s", "--repeat", "2", "--json"]
    first = dbdyno(*command)
    assert first[:2] == dbdyno(*command)[:2]
    found = json.loads(first[1])
    assert [point["point"]["seed"] for point in found["points"]] == [1, 2]
    assert found["points"][0]["outcome"] != found["points"][1]["outcome"]


@pytest.mark.parametrize("replay", ["open", "closed"])
def test_a_trace_of_one_process(dbdyno, trace, replay, tmp_path):
    trace.write_text(TRACE + "x,y\n")
    page = tmp_path / "page.html"
    code, out, err = dbdyno("simulate", trace, "--device", "ssd-sata", "--replay", replay, "--html", page)
    assert (code, without_progress(err)) == (0, "")
    assert f"a trace of 500 requests in 0.998 s, {replay} replay" in out
    assert 'line 502: has no number: "x"' in re.sub(r"\s+", " ", out)
    assert page.read_text().startswith("<!DOCTYPE html")


def test_a_device_that_cannot_keep_up_is_said(dbdyno, trace):
    code, out, _ = dbdyno("simulate", trace, "--device", "hdd-7200", "--speed", "50")
    assert code == 0
    assert "can't keep up with the recorded times in 1 of 1 results" in re.sub(r"\s+", " ", out)


def test_a_trace_of_no_lines(dbdyno, tmp_path):
    empty = tmp_path / "empty"
    empty.write_text("")
    assert dbdyno("simulate", empty) == (2, "", f"dbdyno: {empty} holds no request\n")


def test_names_are_escaped_on_the_page(dbdyno, tmp_path):
    jobs, page = tmp_path / "<b>jobs", tmp_path / "page.html"
    jobs.write_text("[a]\nrw=randread\n")
    assert dbdyno("simulate", jobs, "--seconds", "1s", "--html", page)[0] == 0
    assert "<b>jobs" not in page.read_text()


def test_kernels_are_listed(dbdyno):
    _, out, _ = dbdyno("simulate", "--list")
    assert "2.6.18\n  cfq (default): quantum=4" in out
    names = [kernel["name"] for kernel in json.loads(dbdyno("simulate", "--list", "--json")[1])]
    assert names[0] == "2.6.9"


@pytest.mark.parametrize(
    "typed",
    [
        "--rw randwrite --direct 0,1 --memory 1G --fsync 100 --seconds 1s",
        "--rw randread --iodepth 1,16 --device hdd-15k,ssd-sata --seconds 1s --repeat 2",
        "trace.csv --device ssd-sata",
        "load.toml --device ssd-sata --seconds 1s",
    ],
)
def test_what_it_prints(dbdyno, trace, snapshot, monkeypatch, typed):
    monkeypatch.chdir(trace.parent)
    trace.with_name("load.toml").write_text('[commits]\nclients = [1, 20]\nspace_bytes = "1G"\n')
    code, out, err = dbdyno("simulate", *typed.split())
    assert (code, without_progress(err)) == (0, "")
    assert re.sub(r"requests\s+in\s+\S+\s+s\s+of\s+CPU", "requests in # s of CPU", out) == snapshot


def test_a_server_on_the_page(dbdyno, tmp_path):
    load, page = tmp_path / "load.toml", tmp_path / "page.html"
    load.write_text('[ingest]\ncpu_us_per_row = [50, 100]\n[cache]\nmemory_bytes = "4G"\n')
    code, out, _ = dbdyno("simulate", load, "--seconds", "1s", "--html", page, "--json")
    assert code == 0
    combinations = json.loads(out)["combinations"]
    assert [round(one["rows/s"], -3) for one in combinations] == [20_000, 10_000]
    assert "Rows/s over time" in page.read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[commits]\n\nclients = 0\n", "load.toml:3: commits.clients: 0 is not between 1 and 10000"),
        ("[commits]\nclientz = 1\n", "load.toml:2: commits.clientz: unknown field"),
        ("[ingest]\n[cache]\nfilesystem = 5\n", "load.toml:3: cache.filesystem: "),
        ("[ingest]\nrow_bytes = [1, 1]\n", "load.toml:2: ingest.row_bytes: holds a value twice"),
        ("[ingest]\nrow_bytes = []\n", "load.toml:2: ingest.row_bytes: is an empty list"),
        ("[ingest]\nrow_bytes = inf\n", "load.toml:2: ingest.row_bytes: must be a number"),
        (
            "[ingest]\n[cach]\n",
            'load.toml:2: cach: is not a table of this load; known are ingest, cache. Did you mean "cache"?',
        ),
        ("commits = 3\n", "load.toml:1: commits: must be a table"),
        ("[ingest]\n[commits]\n", "has ingest and commits; give one of these tables"),
    ],
)
def test_what_is_wrong_with_a_server_is_named_with_its_line(dbdyno, tmp_path, text, said):
    load = tmp_path / "load.toml"
    load.write_text(text)
    code, out, err = dbdyno("simulate", load)
    assert (code, out) == (2, "")
    assert said in err


def test_a_short_trace_has_a_series(dbdyno, trace):
    outcome = json.loads(dbdyno("simulate", trace, "--device", "ssd-sata", "--json")[1])["points"][0]["outcome"]
    assert len(outcome["series"]["end_s"]) >= 100


def test_a_trace_larger_than_the_drive_is_folded_onto_it(dbdyno, trace):
    trace.write_text("time_s,op,offset,size\n0,w,0,4096\n0.1,w,900000000000,4096\n0.2,r,5000000000000,4096\n")
    code, _, err = dbdyno("simulate", trace, "--device", "ssd-x25e")
    assert (code, "give --fold and --size, or a larger --device: a disk of" in err) == (2, True), err
    code, out, err = dbdyno("simulate", trace, "--device", "ssd-x25e", "--size", "16G", "--fold")
    assert (code, without_progress(err)) == (0, "")
    said = "a trace of 3 requests in 0.2 s, open replay, folded from 4.547 TiB onto 16 GiB"
    assert out.splitlines()[0] == f"Simulated: {said}"
    assert "2 requests end beyond the device and were folded onto it" in out
    found = json.loads(dbdyno("simulate", trace, "--device", "ssd-x25e", "--size", "16G", "--fold", "--json")[1])
    assert (found["load"], found["points"][0]["outcome"]["load"]["findings"]["folded"]) == (said, 2)
    code, _, err = dbdyno("simulate", trace, "--device", "ssd-x25e", "--fold")
    assert (code, "--fold needs --size, the size of the device that the trace is folded onto" in err) == (2, True)
    code, _, err = dbdyno("simulate", "--rw", "randread", "--fold")
    assert (code, "--fold is for traces; jobs have no recorded times" in err) == (2, True)
