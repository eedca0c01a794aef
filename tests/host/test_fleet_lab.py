"""A study with a real server on several hosts, which are network namespaces with an sshd in each."""

import json
import os
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from dbdyno.analysis.blocks import usable_blocks
from dbdyno.run.images import digest
from dbdyno.store.run_folder import is_begun, read_run
from tests.lab import lab, lab_lacking
from tests.sampled import drawn
from tests.support import DBDYNO, dbdyno, wait_for

STUDY = """\
version = 1
[study]
title = "In a lab"
[hosts]
under_test = {hosts}
[stack]
device = "memory"
filesystem = "tmpfs"
size = "512MiB"
[server.settings]
innodb_buffer_pool_size = ["32M", "64M"]
[workload]
{load}
think_time = "5ms"
duration = "1s"
[design]
blocks = {blocks}
interference = "note"
"""
ON_TWO_HOSTS = {"hosts": '["a", "b"]', "load": 'kind = "slap"\nload = "write"\nclients = 2'}
FROM_CLIENTS = STUDY.format(
    hosts='["a"]',
    load='kind = "oltp"\nload = "point_select"\ntable_size = 1000\nclients = 4\nclients_from = ["b"]',
    blocks=2,
)
SHIFT_SECONDS = 100_000
KILLS_OVER_HOSTS = int(os.environ.get("DBDYNO_KILLS", "100"))
STARTING_SECONDS = 12.0  # what it takes, about, until the first block is measured: kills fall into it, too

pytestmark = [
    pytest.mark.host,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(lab_lacking()), reason=lab_lacking()),
]


@pytest.fixture(scope="module")
def up():
    """Two hosts that are up, the file that names them, and the state folder here; the first has a clock of its own."""
    with lab("a", "b") as made:
        made.folder.chmod(0o755)
        made.silence("a")
        made.listen("a", "unshare", "--time", "--monotonic", str(SHIFT_SECONDS), "--fork", "--kill-child")
        inventory, state = made.inventory(), made.folder / "here"
        inventory.write_text(inventory.read_text().replace('["client"]', '["server", "client"]'))
        done = dbdyno("hosts", "up", inventory, state=state)
        assert done.returncode == 0, done.stderr
        try:
            yield made, inventory, state
        finally:
            down = dbdyno("hosts", "down", inventory, state=state)
        assert down.returncode == 0, down.stderr
        assert not list(Path(made.folder).glob("there/hosts/*/state/journals/*"))


@pytest.mark.drawn(1, group="studies in a lab")
def test_a_study_is_planned_run_killed_and_ended_on_two_hosts(up, tmp_path):
    made, inventory, state = up
    study, into = tmp_path / "study.toml", tmp_path / "run"
    study.write_text(STUDY.format(**ON_TWO_HOSTS, blocks=4))
    planned = dbdyno("plan", study, "--hosts", inventory, state=state)
    assert planned.returncode == 0, planned.stderr + planned.stdout
    assert "all hosts can run it:\n  a: " in planned.stdout
    command = [*DBDYNO, "run", str(study), "--hosts", str(inventory), "--into", str(into)]
    with (tmp_path / "said").open("wb") as said:
        environment = {**os.environ, "DBDYNO_STATE_DIR": str(state)}
        run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=said)
    journal = into / "journal.jsonl"
    wait_for(
        lambda: run.poll() is not None or (journal.exists() and b'"finished"' in journal.read_bytes()),
        seconds=200,
    )
    assert run.poll() is None
    run.send_signal(signal.SIGKILL)
    run.wait()
    before = [trial.id for trial in read_run(into).trials]
    done = dbdyno("run", study, "--hosts", inventory, "--into", into, "--resume", state=state)
    assert done.returncode == 0, done.stderr
    found = read_run(into)
    assert found.ended == "done"
    assert [trial.id for trial in found.trials][: len(before)] == before
    assert len(usable_blocks(found).trials) == 4
    assert sorted({trial.host for trial in found.trials}) == ["a", "b"]
    assert "on a" in done.stderr
    assert "on b" in done.stderr
    assert set(found.hosts) == {"a", "b"}
    [sha256] = {trial.image_sha256 for trial in found.trials}  # made on one host, and sent to the other
    [one, other] = made.folder.glob("there/hosts/*/state/images/*")
    assert digest(one) == digest(other) == sha256
    assert (tmp_path / "said").read_text().count("preparing data") == 1


@pytest.mark.drawn(1, group="studies in a lab")
def test_a_host_that_is_lost_and_comes_back_takes_whole_blocks(up, tmp_path):
    made, inventory, state = up
    study, into = tmp_path / "study.toml", tmp_path / "run"
    study.write_text(STUDY.format(**ON_TWO_HOSTS, blocks=14))
    command = [*DBDYNO, "run", str(study), "--hosts", str(inventory), "--into", str(into)]
    with (tmp_path / "said").open("wb") as said:
        run = subprocess.Popen(
            command, env={**os.environ, "DBDYNO_STATE_DIR": str(state)}, stdout=subprocess.DEVNULL, stderr=said
        )
    try:
        wait_for(lambda: b"on b" in (tmp_path / "said").read_bytes() or run.poll() is not None)
        made.silence("b")  # its agent ends with sshd's connection
        made.listen("b")
        assert run.wait(300) == 0, (tmp_path / "said").read_text()
    finally:
        run.kill()
        run.wait()
    found = read_run(into)
    lost, back, *_ = found.notes  # now and then there is a third, and why is not known
    assert lost.startswith("b no longer takes part: it is lost (b: ")
    assert back == "b is back, and takes whole blocks"
    counted = usable_blocks(found).trials
    hosts = {trial.block: trial.host for trial in found.trials}
    assert len(counted) == 14
    assert all(set(row) == {"t1", "t2"} for row in counted.values())
    assert [hosts[block] for block in counted].count("b") >= 2


def processes_on_hosts(made):
    """The processes of dbdyno on the hosts of a lab, and what they have started."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get("DBDYNO_STATE_DIR", "").startswith(f"{made.folder}/there/"):
                found.append(process)
    return found


def left_on_hosts(made):
    """What there is on hosts of a study: undo logs, folders, mounts and processes."""
    found = [*made.folder.glob("there/hosts/*/state/journals/*"), *made.folder.glob("there/hosts/*/state/scratch/*")]
    found += [line for line in Path("/proc/mounts").read_text().splitlines() if f"{made.folder}/there" in line]
    return found + processes_on_hosts(made)


def killed_at_random(made, command, environment, said, rng):
    """Run a study, kill a process of it on a host or not, then who coordinates; how many kills that were."""
    kills = 0
    with said.open("ab") as errors:
        run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
    try:
        if rng.random() < 0.5:
            time.sleep(rng.uniform(0, 2 * STARTING_SECONDS))
            if there := processes_on_hosts(made):
                with suppress(psutil.NoSuchProcess):
                    rng.choice(there).kill()
                    kills += 1
        time.sleep(rng.uniform(0, 2 * STARTING_SECONDS))
    finally:
        kills += run.poll() is None
        run.kill()
        run.wait()
    return kills


@pytest.mark.drawn(0)
@pytest.mark.timeout(120 * KILLS_OVER_HOSTS)
def test_kills_at_random_moments_lose_and_double_no_block_and_leave_nothing(up, tmp_path):
    made, inventory, state = up
    study, rng, kills, turn = tmp_path / "study.toml", drawn("kills of studies over hosts"), 0, 0
    study.write_text(STUDY.format(**ON_TWO_HOSTS, blocks=10))
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(state)}
    while kills < KILLS_OVER_HOSTS:
        into, said, turn = tmp_path / f"run{turn}", tmp_path / f"said{turn}", turn + 1
        command = [*DBDYNO, "run", str(study), "--hosts", str(inventory), "--into", str(into)]
        for _ in range(rng.randint(1, 4)):
            resume = ["--resume"] if is_begun(into) else []
            kills += killed_at_random(made, [*command, *resume], environment, said, rng)
            dbdyno("restore", "--hosts", inventory, state=state)  # where the guard itself was killed
            wait_for(lambda: not left_on_hosts(made), what=lambda at=said: f"{left_on_hosts(made)}, {at.read_text()}")
        resume = ["--resume"] if is_begun(into) else []
        done = dbdyno(*command[len(DBDYNO) :], *resume, state=state)
        assert done.returncode == 0, said.read_text() + done.stderr
        assert "Traceback" not in said.read_text()
        found = read_run(into)
        counted = usable_blocks(found).trials
        assert (found.ended, len(counted)) == ("done", 10)
        assert all(set(row) == {"t1", "t2"} for row in counted.values())
        assert all(len({trial.host for trial in row.values()}) == 1 for row in counted.values())
        assert max(Counter((one.block, one.attempt, one.treatment) for one in found.trials).values()) == 1
        assert max(Counter(one.id for one in found.trials).values()) == 1


@pytest.mark.drawn(1, group="studies in a lab")
def test_a_server_on_one_host_is_loaded_from_another(up, tmp_path):
    _, inventory, state = up
    study, into = tmp_path / "study.toml", tmp_path / "run"
    study.write_text(FROM_CLIENTS)
    planned = dbdyno("plan", study, "--hosts", inventory, state=state)
    assert "all hosts can run it:\n  a: " in planned.stdout, planned.stderr
    done = dbdyno("run", study, "--hosts", inventory, "--into", into, state=state)
    found = read_run(into)
    assert all("the start is over" in one.cause for one in found.failures), "as may be on a busy machine"
    assert done.returncode == bool(found.failures), done.stderr
    assert (found.ended, len(usable_blocks(found).trials)) == ("done", 2)
    for trial in found.trials:
        [client] = trial.load["client_hosts"]
        assert (trial.host, client["host"], client["clients"]) == ("a", "b", 4)
        assert -client["clock_bound_us"] < client["start_off_us"] < 100_000
        assert client["interface"] != "lo", "over the network between them"
        assert trial.metrics["server_cpu_us_per_query"] > 0, "probes and load are on the clock of the server's host"
        its = json.loads((into / "trials" / trial.id / "clients/b/load.json").read_text())["runs"][0]
        starts_ns = [one["clock"]["measure_start_ns"] for one in (trial.load, its)]
        assert (starts_ns[0] - starts_ns[1]) / 1e9 == pytest.approx(SHIFT_SECONDS, abs=1)
