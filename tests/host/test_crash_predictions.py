"""What documentation says of settings and power cuts, as studies whose answer is known; a part of them in each commit.

With ``DBDYNO_TEST_LONG`` set all of them, of more cuts.
"""

import statistics
from dataclasses import dataclass, field

import pytest

from dbdyno.store.run_folder import read_run
from tests.disks import LONG
from tests.sampled import some
from tests.support import dbdyno, what_is_left

pytestmark = [pytest.mark.host, pytest.mark.timeout(900)]

CUTS = 20 if LONG else 10
INTERVAL_MS = 1000  # innodb_flush_log_at_timeout as shipped
STUDY = """\
version = 1
[study]
title = "what is known of {title}"
[stack]
device = "nvme"
size = "512MiB"
filesystem = "ext4"
{levels}
[server.settings]
{settings}
innodb_log_file_size = "64M"
[workload]
kind = "ledger"
clients = {clients}
accounts = {accounts}
warmup = "500ms"
duration = "2s"
[crash]
cuts = {cuts}
cuts_per_run = 10
when = ["{when}"]
[design]
interference = "note"
"""


@dataclass(frozen=True)
class Known:
    """A study of named levels; of each level the outcomes that may be found, and those of which one must be."""

    levels: dict[str, tuple[str, set[str], set[str]]]  # name: fields, outcomes that may be, of which one must be
    settings: str = 'innodb_buffer_pool_size = "32M"'
    when: str = "uniform"
    load: dict[str, int] = field(default_factory=lambda: {"clients": 8, "accounts": 1000})


DAMAGE = {"filesystem", "server", "table", "inconsistent"}
SAFE = ({"nothing"}, {"nothing"})
TAIL = ({"tail", "nothing"}, {"tail"})
KNOWN = {
    # Of what was prepared MariaDB keeps what is in the binary log, and that was not synced. Of 100 cuts one left two of
    # the transactions that it rolled back there in part (10.11.19).
    "binlog": Known(
        {
            "both-synced": ("sync_binlog = 1", *SAFE),
            "binlog-not-synced": ("sync_binlog = 0", {"tail", "nothing", "inconsistent"}, {"tail"}),
            "redo-log-not-synced": ("sync_binlog = 1\ninnodb_flush_log_at_trx_commit = 2", *TAIL),
        },
        settings='log_bin = true\ninnodb_buffer_pool_size = "32M"',
    ),
    # Without barriers an fsync does not reach the medium; where the cache survives a cut it need not.
    "barriers": Known(
        {
            "volatile": ('mount = "nobarrier"', {*DAMAGE, "tail", "nothing"}, {*DAMAGE, "tail"}),
            "protected": ('mount = "nobarrier"\ndevice = "nvme(power_loss_protected=true)"', *SAFE),
        }
    ),
    # A page of 16 KiB is four sectors of 4 KiB: the redo log mends no page of which a part was written. With the buffer
    # MariaDB still does not mend the first page of a file (10.11.19): rarely a table is damaged.
    "doublewrite": Known(
        {
            "with": ("innodb_doublewrite = true", {"nothing", "table"}, {"nothing"}),
            "without": ("innodb_doublewrite = false", {*DAMAGE, "nothing"}, DAMAGE),
        },
        settings='innodb_buffer_pool_size = "8M"\ninnodb_lru_scan_depth = 100',
        when="page-write",
        load={"clients": 32, "accounts": 20_000},
    ),
}
SLOW = {
    # No statement on a MyISAM table is synced. The kernel writes back what is older than 30 s (dirty_expire_centisecs);
    # from then on there is part of a table on the disk, which counts as open. Before, all rows are lost, and no more.
    "myisam": Known(
        {
            "innodb": ('engine = "innodb"', *SAFE),
            "myisam": ('engine = "myisam"\nwarmup = "42s"\nblob_share = 0', {"table", "tail"}, {"table"}),
        }
    ),
}
TRIED = {name: KNOWN[name] for name in some("crash predictions", KNOWN, 0.34)} | (SLOW if LONG else {})


@pytest.fixture(params=TRIED)
def known(request):
    return request.param, TRIED[request.param]


def found_in(run):
    """The cuts of each level, and of the control."""
    held = read_run(run)
    named = {one.id: one.levels["configuration"] for one in held.design.treatments} | {"control": "control"}
    found = {name: [] for name in named.values()}
    for trial in held.trials:
        found[named[trial.treatment]] += trial.cuts
    return found


def test_what_is_known_is_found(known, state, study_file, tmp_path):
    title, study = known
    levels = "\n".join(f"[levels.{name}]\n{fields}" for name, (fields, _, _) in study.levels.items())
    fields = {"title": title, "levels": levels, "settings": study.settings, "when": study.when, "cuts": CUTS}
    path, run = study_file(STUDY.format(**fields, **study.load)), tmp_path / "run"
    done = dbdyno("run", path, "--into", run, state=state, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert what_is_left(state) == []
    found = found_in(run)
    for level, (_, allowed, seen) in study.levels.items():
        cuts = found[level]
        outcomes = {cut.outcome for cut in cuts}
        # Pages are not written all the time: some cuts may find none to be made in.
        assert CUTS / 2 <= len(cuts) <= CUTS if study.when == "page-write" else len(cuts) == CUTS
        assert outcomes <= allowed, (level, [cut.cause for cut in cuts])
        assert outcomes & seen, (level, outcomes)
        lost_ms = [cut.lost_ms for cut in cuts if cut.outcome == "tail"]
        assert allowed != TAIL[0] or statistics.median(lost_ms) <= INTERVAL_MS, (level, lost_ms)
