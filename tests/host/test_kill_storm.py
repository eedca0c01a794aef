"""SIGKILL at random moments of mixed studies, and of ``restore`` itself: nothing that was announced is left.

DBDYNO_KILLS=200 DBDYNO_TEST_SEED=7 pytest tests/host/test_kill_storm.py -s
"""

import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.kills import UNDONE, announced, kill_after, restore
from tests.loops import lent_loop
from tests.sampled import KILLS, drawn
from tests.support import start_dbdyno, study_text, what_is_left

SHOWN_KNOBS = ("scheduler", "nr_requests", "read_ahead_kb", "rotational", "wbt_lat_usec", "nomerges", "rq_affinity")

pytestmark = [pytest.mark.host, pytest.mark.long, pytest.mark.timeout(120 + 60 * KILLS)]


def without(text, *starts):
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(starts))


def emulated(rng, _loop):
    kind = rng.choice(["ext4", "xfs", "btrfs"])
    size = {"ext4": "256MiB", "xfs": "512MiB", "btrfs": "512MiB"}[kind]
    fields = {"device": rng.choice(['"nvme"', '["hdd-7200", "ssd-sata"]', '"raid0(nvme, 2)"']), "size": size}
    return study_text(**fields, filesystem=f'"{kind}"', amount='duration = "700ms"', blocks=1)


def real(rng, loop):
    kind = rng.choice(["ext4", "xfs"])
    fields = {"device": f'"{loop[0]}"', "stack": f'serial = "{loop[1]}"', "filesystem": f'"{kind}"'}
    queue = "[queue]\nread_ahead_kb = 64\nnr_requests = 32\n[workload]"
    text = study_text(**fields, scheduler='["mq-deadline", "bfq"]', amount='duration = "700ms"', blocks=1)
    return without(text.replace("[workload]", queue), "size")


def here(rng, _loop):
    engine = rng.choice(['["innodb", "myisam"]', '"aria"'])
    text = study_text(device='"here"', engine=engine, amount='duration = "700ms"', blocks=1)
    text += "[host]\nvfs_cache_pressure = [90, 120]\n"
    return without(text, "size", "scheduler", "filesystem =", "[filesystem]", "mount")


def in_memory(_rng, _loop):
    text = study_text(device='"memory"', filesystem='"tmpfs"', amount='duration = "700ms"', blocks=1)
    return without(text, "scheduler", "[filesystem]", "mount")


STUDIES = {"emulated": emulated, "real": real, "here": here, "memory": in_memory}


def settings(loop):
    queue = Path("/sys/block") / Path(loop[0]).name / "queue"
    return {name: (queue / name).read_text(encoding="ascii") for name in SHOWN_KNOBS if (queue / name).exists()}


def test_nothing_is_left_after_random_kills(state, study_file, tmp_path):
    rng, counts, kills = drawn("storm"), Counter(), 0
    longest = dict.fromkeys(STUDIES, 6.0)  # seconds that a run takes, as far as it was seen
    with lent_loop(tmp_path / "lent") as device:
        loop = (str(device), str(tmp_path / "lent"))
        before = settings(loop)
        for number in range(20 * KILLS):
            if kills == KILLS:
                break
            name = list(STUDIES)[number % len(STUDIES)]
            study = study_file(STUDIES[name](rng, loop))
            began = time.monotonic()
            process = start_dbdyno("run", study, "--into", tmp_path / f"run{number}", state=state)
            if kill_after(process, rng.uniform(0.3, 1.1 * longest[name])):
                kills += 1
                counts[name] += 1
            else:
                assert process.returncode == 0, f"{name}: a run that nobody killed failed"
                longest[name] = 0.3 * longest[name] + 0.7 * (time.monotonic() - began)
            changes = announced(state)
            counts["restore"] += restore(state, rng)
            assert what_is_left(state) == [], name
            assert [one for one in changes if not UNDONE[one["kind"]](one)] == [], name
            assert settings(loop) == before, name
            counts["changes"] += len(changes)
    assert kills == KILLS
    sys.stdout.write(f"\n{kills} kills: {dict(counts)}\n")
