"""Prepared data of a study on several hosts: made on one, sent to the others once, and the same bytes on all.

The hosts are processes of this machine (see ``tests/fleets.py``) with a state folder each; what they keep is real.
"""

import contextlib
import json
import os
import platform
import shutil
import signal
import time

import pytest

from dbdyno.errors import HostError, TrialError
from dbdyno.hosts.host_side import FolderSide
from dbdyno.run.images import RECORD, digest
from dbdyno.store.run_folder import is_begun, read_run
from tests.fleets import HOSTS, Fleet, lines
from tests.scripted import HOLE, PIECE, Script
from tests.support import wait_for
from tests.unit.run.test_fleet import ON_THREE
from tests.unit.run.test_fleet_killed import of_session


class Keeping:
    """A maker of scripts whose data are kept; of what is prepared there is a line each in a file."""

    def __init__(self, path):
        self.path, self.kernels, self.limits, self.fails, self.seconds = path, {}, {}, set(), 0.0
        self.by_device = False  # of which the study has two
        self.breaks_off = False  # each host in its second block

    def __call__(self, host):
        script = Script()
        script.keeps_data = True
        if not self.by_device:
            script.image_key = lambda _: "all"
        script.fails = {(2, "t1"): HostError("the disk is full")} if self.breaks_off else {}
        kernel = self.kernels.get(host, "6.1")
        platform.release = lambda: kernel  # in the host's own process
        os.environ["DBDYNO_IMAGES_MAX"] = self.limits.get(host, "1GiB")

        def prepare():
            with self.path.open("a") as file:
                file.write(json.dumps(host) + "\n")
            time.sleep(self.seconds)
            if host in self.fails:
                raise TrialError("sysbench is not there")

        script.faults["prepare data"] = prepare
        return script

    def prepared(self):
        return lines(self.path)


@pytest.fixture
def keeping(tmp_path):
    return Keeping(tmp_path / "prepared")


@pytest.fixture
def fleet(states, keeping):
    made = Fleet(states, script_of=keeping, preparing=keeping)
    made.states, made.keeping = states, keeping
    return made


def data_of(into):
    """Host -> what its trials said that they began with: what they were, and as which image they were recorded."""
    found = {}
    for trial in read_run(into).trials:
        found.setdefault(trial.host, set()).add((trial.observed["device"]["data"], trial.image_sha256))
    return found


def kept(states, host):
    return sorted(path for path in (states / host / "images").glob("*"))


def nothing_is_left(states):
    """Nobody waits for what a lost host has to put back."""

    def left():
        images = [path for host in HOSTS for path in kept(states, host) if path.name.startswith(".")]
        return images + [path for host in HOSTS for path in (states / host / "journals").glob("*")]

    wait_for(lambda: not left())


def same_on(into, hosts=HOSTS):
    found = data_of(into)
    assert set(found) >= set(hosts)
    [(_, sha256)] = set.union(*(found[host] for host in hosts))
    assert sha256
    return sha256


def test_data_are_prepared_on_one_host_and_the_others_get_the_same_bytes(plan, into, fleet):
    assert fleet.run(plan(ON_THREE, blocks=6), into).how == "done"
    sha256 = same_on(into)
    assert fleet.keeping.prepared() == ["db1"]
    about = "mariadb, innodb, files, slap"
    took = [said.rpartition(" (")[0] for said in fleet.said if " copies " in said]
    assert took[0] == f"db2: copies prepared data from db1: {about}"
    assert took[1] in {f"db3: copies prepared data from {host}: {about}" for host in ("db1", "db2")}
    assert len(took) == 2
    for host in HOSTS:
        [image] = kept(fleet.states, host)
        content = image / "content"
        assert digest(image) == sha256 == json.loads((image / RECORD).read_text())["sha256"]
        assert content.stat().st_size == 2 * PIECE + HOLE
        assert content.stat().st_blocks * 512 < HOLE
    nothing_is_left(fleet.states)


def test_several_images_are_prepared_by_several_hosts(plan, into, fleet):
    fleet.keeping.by_device = True
    fleet.run(plan(ON_THREE, blocks=6), into)
    assert sorted(fleet.keeping.prepared()) == ["db1", "db2"]
    found = list(data_of(into).values())
    assert found == [found[0]] * 3
    assert len(found[0]) == 2
    nothing_is_left(fleet.states)


def test_what_all_have_is_neither_prepared_nor_sent_again(plan, into, fleet):
    fleet.run(plan(ON_THREE, blocks=3), into)
    fleet.said.clear()
    again = into.with_name("again")
    fleet.run(plan(ON_THREE, blocks=3), again)
    assert same_on(into) == same_on(again)
    assert fleet.keeping.prepared() == ["db1"]
    assert not [said for said in fleet.said if " copies " in said]


def alone(states, keeping, plan, host, where):
    """What a host would keep of a study of its own."""
    on_one = ("[stack]", f'[hosts]\nunder_test = ["{host}"]\n[stack]')
    Fleet(states, [host], keeping, keeping).run(plan(on_one, blocks=1), where)


def test_of_several_contents_all_get_the_one_that_the_run_began_with(plan, into, fleet):
    for host in HOSTS[:2]:
        alone(fleet.states, fleet.keeping, plan, host, into.parent / host)
    contents = [
        json.loads((image / RECORD).read_text())["sha256"] for host in HOSTS for image in kept(fleet.states, host)
    ]
    assert len(set(contents)) == 2
    shutil.copytree(kept(fleet.states, "db2")[0], into.parent / "other")
    made, fleet.keeping.breaks_off = plan(ON_THREE, blocks=6), True
    with pytest.raises(HostError, match="no host is left"):
        fleet.run(made, into)
    shutil.copytree(kept(fleet.states, "db3")[0], into.parent / contents[0])
    first = same_on(into)
    assert first == contents[0]
    [image] = kept(fleet.states, "db1")
    for host, other in (("db1", "other"), ("db2", "other"), ("db3", first)):  # most have another by now
        shutil.rmtree(fleet.states / host / "images")
        shutil.copytree(into.parent / other, fleet.states / host / "images" / image.name)
    fleet.keeping.breaks_off = False
    fleet.run(made, into, resume=True)
    assert same_on(into) == first


@pytest.mark.parametrize("damages", [1, 100])
def test_what_is_damaged_on_its_way_is_sent_anew_or_prepared(plan, into, fleet, damages):
    left = [1] * damages

    def piece(*what):
        content = FolderSide.piece(fleet.hosts._sides["db1"], *what)
        if what[1] == "content":
            with contextlib.suppress(IndexError):  # two hosts may ask at once, and one gets the last
                return content[:-1] + bytes([content[-1] ^ left.pop()])
        return content

    fleet.hosts._sides["db1"].piece = piece
    fleet.run(plan(ON_THREE, blocks=6), into)
    assert [said for said in fleet.said if "arrived damaged" in said]
    nothing_is_left(fleet.states)
    if damages == 1:
        same_on(into)
        assert fleet.keeping.prepared() == ["db1"]
        assert [said for said in fleet.said if "it is sent again" in said]
    else:
        assert sorted(fleet.keeping.prepared()) == list(HOSTS)
        found = data_of(into)
        assert len(set.union(*found.values())) == 3
        assert [said for said in fleet.said if "db3 prepares its own data" in said]


def test_a_host_that_is_lost_while_it_takes_data_is_left_out(plan, into, fleet):
    write = fleet.hosts._sides["db2"].write_piece

    def cut(*_):
        fleet.lost["db2"] = "silent for 4 s"
        fleet.hosts._sides["db2"].write_piece = write
        raise HostError("db2: is lost: silent for 4 s")

    fleet.hosts._sides["db2"].write_piece = cut
    assert fleet.run(plan(ON_THREE, blocks=4), into).how == "done"
    same_on(into, ("db1", "db3"))
    assert set(data_of(into)) == {"db1", "db3"}
    nothing_is_left(fleet.states)


def test_a_host_without_room_prepares_its_own(plan, into, fleet):
    fleet.keeping.limits["db2"] = "100KiB"
    fleet.run(plan(ON_THREE, blocks=6), into)
    same_on(into, ("db1", "db3"))
    assert fleet.keeping.prepared() == ["db1", "db2"]
    assert {sha256 for _, sha256 in data_of(into)["db2"]} == {""}  # not kept there
    assert any("db2: the image takes" in said and "db2 prepares its own data" in said for said in fleet.said)
    nothing_is_left(fleet.states)


def test_a_host_whose_data_depend_on_something_else_prepares_its_own(plan, into, fleet):
    fleet.keeping.kernels["db3"] = "5.15"
    fleet.run(plan(ON_THREE, blocks=6), into)
    one = same_on(into, ("db1", "db2"))
    assert {sha256 for _, sha256 in data_of(into)["db3"]} != {one}
    assert sorted(fleet.keeping.prepared()) == ["db1", "db3"]
    assert "db3: can't use the prepared data of db1: its kernel differs" in fleet.said


def test_fresh_images_are_prepared_once(plan, into, fleet):
    fleet.run(plan(ON_THREE, blocks=3), into)
    again = into.with_name("again")
    fleet.run(plan(ON_THREE, blocks=3), again, fresh_images=True)
    assert same_on(into) != same_on(again)
    assert len(fleet.keeping.prepared()) == 2


def test_where_preparing_fails_another_host_does_it(plan, into, fleet):
    fleet.keeping.fails.add("db1")
    fleet.run(plan(ON_THREE, blocks=3), into)
    same_on(into)
    assert fleet.keeping.prepared() == ["db1", "db2"]
    assert "db1: sysbench is not there" in fleet.said


def test_what_can_t_be_prepared_is_the_failure_of_trials(plan, into, fleet):
    fleet.keeping.fails.update(HOSTS)
    with pytest.raises(
        HostError, match=r"no host is left \(db1: .*sysbench is not there.*db3: .*sysbench is not there"
    ):
        fleet.run(plan(ON_THREE, blocks=3), into)
    assert sorted(fleet.keeping.prepared()[:2]) == ["db1", "db2"]


def forked(fleet, plan, into):
    pid = os.fork()
    if not pid:
        try:
            os._exit(0 if fleet.run(plan, into, resume=is_begun(into)).how == "interrupted" else 1)
        finally:
            os._exit(2)
    return pid


@pytest.mark.drawn(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("step", ["prepare", "send"])
def test_ended_meanwhile_nothing_is_left_and_it_goes_on(plan, into, fleet, number, step):
    made, reached = plan(ON_THREE, blocks=3), into.parent / "reached"
    fleet.keeping.seconds = 60 if step == "prepare" else 0

    def slow(*piece):
        reached.touch()
        time.sleep(0.3)
        return FolderSide.piece(fleet.hosts._sides["db1"], *piece)

    fleet.hosts._sides["db1"].piece = slow
    pid = forked(fleet, made, into)
    wait_for(reached.exists if step == "send" else fleet.keeping.path.exists)
    os.kill(pid, number)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == (0 if number == signal.SIGINT else -number)
    wait_for(lambda: not any(of_session(fleet.states / host) for host in HOSTS))  # they end with it
    nothing_is_left(fleet.states)
    fleet.keeping.seconds = 0
    again = Fleet(fleet.states, script_of=fleet.keeping, preparing=fleet.keeping)
    assert again.run(made, into, resume=is_begun(into)).how == "done"
    same_on(into)
