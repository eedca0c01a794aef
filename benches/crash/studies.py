"""The studies of the benchmark of power cuts, and how they are run."""

import json
import subprocess
import sys
import time

STUDY = """
version = 1
[study]
title = "{title}"
[stack]
size = "512MiB"
{stack}
[server.settings]
innodb_buffer_pool_size = "16M"
innodb_log_file_size = "64M"
innodb_flush_log_at_trx_commit = 1
{settings}
[workload]
kind = "ledger"
clients = 4
accounts = 2000
warmup = "500ms"
duration = "{duration}"
[crash]
cuts = {cuts}
cuts_per_run = 10
when = {when}
survivors = {survivors}
keep = "{keep}"
[design]
seed = {seed}
"""
FILESYSTEMS = ("ext4", "xfs")
# No flush: to a drive without a volatile cache the kernel sends none.
WHEN = ["uniform", "page-write", "recovery"]
SURVIVORS = ["random-4096", "random-512"]
DBDYNO = [sys.executable, "-m", "dbdyno.cli.main"]
ATTEMPTS = 5


def study(  # noqa: PLR0913
    title, stack, *, cuts, seed, keep="none", settings="", when=WHEN, survivors=SURVIVORS, duration="5s"
):
    """Return a study's text."""
    when, survivors = json.dumps(list(when)), json.dumps(list(survivors))
    fields = {"stack": stack, "settings": settings, "duration": duration, "cuts": cuts, "seed": seed, "keep": keep}
    return STUDY.format(title=title, when=when, survivors=survivors, **fields)


def run(folder, name, text):
    """Run a study; return its trials, each with its ``folder``, and the seconds that all took."""
    path, into = folder / f"{name}.toml", folder / name
    path.write_text(text, encoding="utf-8")
    began = time.monotonic()
    resume = []
    for left in reversed(range(ATTEMPTS)):
        argv = [*DBDYNO, "run", str(path), "--into", str(into), *resume]
        if subprocess.run(argv, check=not left, stdout=subprocess.DEVNULL).returncode == 0:
            break
        # Where other processes are given copies of all mounts, one may hold a device longer than dbdyno waits.
        resume = ["--resume"]
    seconds = time.monotonic() - began
    found = sorted(into.glob("trials/*/trial.json"))
    return [{**json.loads(path.read_text(encoding="utf-8")), "folder": str(path.parent)} for path in found], seconds
