"""Power cuts on two hosts with real servers, names of this machine with a state folder each; examined again on both."""

import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from dbdyno.cli.crash import all_as_dict
from dbdyno.plan.plan import make_plan
from dbdyno.run.execute import open_run
from dbdyno.run.fleet.coordinate import identity_of, run_on_hosts
from dbdyno.run.fleet.part import HostAccess
from dbdyno.run.fleet.request import make_requests
from dbdyno.run.kept_states import here, kept_states
from dbdyno.run.preflight import versions
from dbdyno.run.reexamine import ExaminerAccess, on_hosts
from dbdyno.store.run_folder import read_run
from dbdyno.study.load import load_study
from tests.crash_studies import KEPT
from tests.fleets import Fleet
from tests.local_hosts import LocalHosts
from tests.support import what_is_left

pytestmark = [pytest.mark.host, pytest.mark.timeout(400)]

HOSTS = ("db1", "db2")
STUDY = KEPT.format(hosts='[hosts]\nunder_test = ["db1", "db2"]\n', cuts_per_run=2)


def test_states_of_two_hosts_are_kept_here_and_give_the_same_on_hosts_as_here(state, study_file, tmp_path):
    into = tmp_path / "run"
    with tempfile.TemporaryDirectory(prefix="dd", dir="/var/tmp") as folder, closing(LocalHosts(HOSTS)) as hosts:
        Path(folder).chmod(0o755)
        states = {host: Path(folder) / host for host in HOSTS}

        def environment_of(host):
            return {"DBDYNO_STATE_DIR": str(states[host])}

        plan = make_plan(load_study(study_file(STUDY)), seed=1)
        run = open_run(plan, into, resume=False, versions=versions(plan), host={})
        try:
            requests = make_requests(plan, identity_of(into), frozenset(), fresh_images=False)
            access = HostAccess(hosts, dict, environment_of=environment_of)
            assert run_on_hosts(plan, run, Fleet(tmp_path), requests, access).how == "done"
        finally:
            run.close()
        held = read_run(into)
        kept = kept_states(into, held)
        assert kept, "with the log synced once a second, a cut loses something"
        assert {trial.host for trial in held.trials if trial.cuts} == set(HOSTS)
        assert {trial.host for trial in held.trials if any(cut.kept for cut in trial.cuts)} == set(HOSTS)
        for one in kept:
            image = (one.folder / "base.img").stat()
            assert image.st_size == 512 * 1024**2 > 2 * 512 * image.st_blocks

        said = []
        with on_hosts(into, kept, ExaminerAccess(hosts, dict, said.append, environment_of=environment_of)) as examining:
            there = list(examining(kept))
        assert said == []
        assert all(one.is_same for one in there)
        assert all_as_dict("it", there) == all_as_dict("it", list(here(into)(kept)))
        assert [what_is_left(one) for one in (state, *states.values())] == [[], [], []]
