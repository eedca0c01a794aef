"""Client hosts that are this machine under several names, and studies whose load comes from them."""

from contextlib import closing, contextmanager
from pathlib import Path

from dbdyno.hosts.connect import Connected
from dbdyno.hosts.inventory import read_inventory
from dbdyno.plan.plan import make_plan
from dbdyno.run.execute import open_run, run_all
from dbdyno.run.over_hosts import with_hosts
from dbdyno.run.ports import HOST
from dbdyno.store.run_folder import read_run
from dbdyno.study.load import load_study
from dbdyno.system.clock import Offset
from tests.local_hosts import LocalHosts

STUDY = """\
version = 1
[study]
title = "load from other hosts"
[stack]
device = "here"
{stack}
[server.settings]
innodb_buffer_pool_size = "64M"
{settings}
[workload]
kind = "oltp"
load = "point_select"
table_size = 1000
{clients}
duration = "{duration}"
warmup = "100ms"
think_time = "5ms"
{workload}
[design]
interference = "note"
blocks = {blocks}
seed = 7
"""
INVENTORY = """\
version = 1
[cluster]
name = "tested"
address = "127.0.0.1"
"""


def study_text(**fields):
    """A study of some seconds whose load comes from c1 and c2; that clients pause leaves processors to other tests."""
    given = {
        "stack": "",
        "settings": "innodb_flush_log_at_trx_commit = [1, 2]",
        "clients": 'clients = 4\nclients_from = ["c1", "c2"]',
        "duration": "1s",
        "workload": "",
        "blocks": 2,
    }
    return STUDY.format(**{**given, **fields})


class Clock:
    """What ``Connected`` keeps of the hosts: clocks that are this machine's, and which are lost."""

    def __init__(self, hosts, gone=None):
        self.names, self.gone = hosts.names, {} if gone is None else gone

    def offsets(self, hosts=None):
        same = Offset(offset_ns=0, bound_ns=0.0, round_trip_ns_min=1000, round_trip_ns_median=1000.0, echoes=128)
        return {name: {"monotonic": same} for name in hosts or self.names if name not in self.gone}

    def lost(self):
        return dict(self.gone)


class Watched(LocalHosts):
    """Hosts of which a test knows the programs that run there; ``prefixes`` come before what measures on a host."""

    def __init__(self, names, prefixes=None):
        super().__init__(names)
        self.prefixes, self.started = prefixes or {}, []

    def start(self, host, argv, *, stdin=b"", environment=None):
        self.started.append((host, tuple(argv)))
        before = self.prefixes.get(host, ()) if "python" in argv else ()
        return super().start(host, (*before, *argv), stdin=stdin, environment=environment)


@contextmanager
def connected_to(folder: Path, *names, prefixes=None):
    """Yield such hosts as a run knows them."""
    path = folder / "hosts.toml"
    path.write_text(
        INVENTORY + "".join(f'[host.{name}]\nssh = "{name}.lab"\nroles = ["client"]\n' for name in names),
        encoding="utf-8",
    )
    with closing(Watched(names, prefixes)) as hosts:
        yield Connected(hosts, read_inventory(path), Clock(hosts))


class Said:
    """A run's progress, as a list of what it said."""

    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)

    def trial(self, slot, note, done, outlook):
        pass

    def trial_done(self, seconds):
        pass


def run_over(folder: Path, text: str, connected, *, resume=False):
    """Run a study whose load comes from these hosts; returns the run as it is stored, its folder, what was said."""
    study, into, said = folder / "study.toml", folder / "run", Said()
    study.write_text(text, encoding="utf-8")
    plan = make_plan(load_study(study))
    stored = open_run(plan, into, resume=resume, versions={"dbdyno": "0"}, host={"cores": 2})
    try:
        run_all(plan, stored, said, frozenset(), ports=with_hosts(HOST, connected))
    finally:
        stored.close()
    return read_run(into), into, said.lines
