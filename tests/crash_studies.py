"""Small studies of power cuts and kills, and what came of them."""

from dbdyno.store.run_folder import read_run
from tests.support import dbdyno

FLUSH = "innodb_flush_log_at_trx_commit"
STUDY = """\
version = 1
[study]
title = "tiny cuts"
[stack]
{stack}
[server.settings]
innodb_buffer_pool_size = "32M"
innodb_log_file_size = "64M"
{flush} = {levels}
[workload]
kind = "ledger"
clients = {clients}
accounts = 1000
warmup = "200ms"
duration = "{seconds}s"
{workload}
[crash]
{crash}
[design]
seed = 7
"""
EMULATED = 'device = "{device}"\nsize = "512MiB"\nfilesystem = "{filesystem}"'
PROTECTED = EMULATED.format(device="nvme-pm9a3", filesystem="ext4")


def crash_study(levels, crash, *, stack=None, seconds=2, clients=4, workload=""):  # noqa: PLR0913
    """Return a study of ``FLUSH`` at some levels; ``stack`` is an emulated SSD with ext4 if not given."""
    stack = stack or EMULATED.format(device="ssd-sata", filesystem="ext4")
    fields = {"levels": levels, "crash": crash, "stack": stack, "seconds": seconds, "workload": workload}
    return STUDY.format(flush=FLUSH, clients=clients, **fields)


def cuts_of(run, level):
    """Return all cuts of the treatment with this level."""
    held = read_run(run)
    (treatment,) = [one.id for one in held.design.treatments if str(one.levels[FLUSH]) == str(level)]
    return [cut for trial in held.trials if trial.treatment == treatment for cut in trial.cuts]


def ran(study, run, state, *more):
    """Run a study to its end, which must be a good one."""
    done = dbdyno("run", study, "--into", run, *more, state=state, timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


KEPT = """\
version = 1
[study]
title = "Kept"
{hosts}[stack]
device = "nvme"
size = "512MiB"
filesystem = "ext4"
[server.settings]
innodb_buffer_pool_size = "32M"
innodb_flush_log_at_trx_commit = 0
[workload]
kind = "ledger"
clients = 4
warmup = "500ms"
duration = "1500ms"
[crash]
cuts = 4
cuts_per_run = {cuts_per_run}
keep = "all"
"""
