"""Ray's files on a host: what is told of a node is read as another's would be; Ray gets a folder in a closed one."""

import json
import os
import sys
from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.hosts import node
from dbdyno.hosts.answers import Begun, PutBack
from dbdyno.hosts.channel import Channel
from dbdyno.hosts.node import lacking_for_ray
from dbdyno.stack.undo.log import Journal
from dbdyno.stack.undo.undos import RemoveRayFolder

MARK = "dbdyno-ray-0123456789"
SAID = {"cluster": "c", "python": sys.executable, "joined": False, "label": "x"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of a node that an undo log names; its processes have ended."""
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(tmp_path / "state"))
    made = tmp_path / MARK
    made.mkdir(mode=0o700)
    Journal("Ray of dbdyno hosts, for lab.a").announce(RemoveRayFolder(str(made)))
    return made


def test_what_it_says(folder):
    (folder / "node.json").write_text(json.dumps(SAID))
    found = node.running()
    assert (found.cluster, found.python, found.processes, found.folder) == ("c", sys.executable, 0, str(folder))
    (folder / "node.json").unlink()
    assert node.running().cluster == ""


DAMAGES = {
    "[1]": "it is no JSON object",
    "null": "it is no JSON object",
    "": "it is empty",
    "[" * 100_000: "it is nested too deep",
    '{"a":' * 100_000: "it is nested too deep",
    "x" * (1024**2 + 1): "it is larger than 1 MiB",
    "\x1b[2J{": "it is not valid JSON from line 1, column 1 on",
    "{}": "'cluster' is missing",
    json.dumps({**SAID, "cluster": 5}): "cluster is no text",
    json.dumps({**SAID, "python": ["\u202e"]}): "python is no text",
    json.dumps({**SAID, "joined": "no"}): "joined is no true or false",
}


def check(folder, why):
    with pytest.raises(HostError) as error:
        node.running()
    assert str(error.value) == (
        f"{folder}/node.json: can't be read, so it is unknown what Ray runs for here: {why}; "
        "dbdyno hosts down ends that Ray, then up starts it anew"
    )


@pytest.mark.parametrize(("text", "why"), DAMAGES.items(), ids=range(len(DAMAGES)))
def test_a_damaged_one_is_named_and_down_clears_it(folder, text, why):
    (folder / "node.json").write_text(text)
    check(folder, why)
    assert node.stop() == ([f"remove {folder}"], True)
    assert node.running() is None


def test_so_is_what_is_no_file(folder):
    path = folder / "node.json"
    os.mkfifo(path)
    check(folder, "it is no regular file")
    path.unlink()
    path.mkdir()
    check(folder, "Is a directory")
    path.rmdir()
    path.symlink_to("/proc/self/environ")
    check(folder, "it is a link, and links are not followed here")


def test_ray_is_given_a_folder_in_a_closed_one_whose_sockets_have_room_for_their_names(tmp_path, monkeypatch):
    """The command itself is played: what it is given, and what is around that."""
    monkeypatch.setenv("DBDYNO_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(node.Node, "command", lambda _, folder: ["mkdir", "-m", "777", str(folder)])
    made = node.Node("c", "lab.a", "127.0.0.1:1", head=False, address="127.0.0.1", first_port=20_000,
                     ray_folder=str(tmp_path), object_store_bytes=1)  # fmt: skip
    assert node.start(made, "secret")
    (around,) = tmp_path.glob("dbdyno-ray-*")
    (given,) = (path for path in around.iterdir() if path.is_dir())
    assert (around.stat().st_mode & 0o777, given.stat().st_mode & 0o777) == (0o700, 0o777)
    below = len(str(given.relative_to(tmp_path))) + len(
        "/session_2026-11-28_10-02-58_654083_4194304/sockets/plasma_store"
    )
    assert 18 + 1 + below <= 107
    assert node.stop()[1]
    assert not around.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_folder_in_which_others_could_replace_rays_is_not_taken(tmp_path):
    tmp_path.chmod(0o777)
    (said,) = lacking_for_ray(tmp_path, [])
    assert said.startswith(f"{tmp_path}: {tmp_path} can be written by others, who could replace what is in it; ")
    tmp_path.chmod(0o1777)
    assert lacking_for_ray(tmp_path, []) == []


def test_down_removes_what_studies_that_were_not_ended_have_left(tmp_path):
    parts = tmp_path / "fleet"
    for name in ("one.a", "two.a"):
        (parts / name / "trials").mkdir(parents=True)
    state = {"DBDYNO_STATE_DIR": str(tmp_path), "SSH_CONNECTION": ""}
    with Channel("a", [sys.executable, "-m", "dbdyno.hosts.agent"], state) as agent:
        agent.answer(Begun)
        said = agent.ask({"do": "stop"}, PutBack)
        assert (said.undone, said.whole) == (["2 parts removed of studies that were not ended"], True)
        assert not parts.exists()
        assert agent.ask({"do": "stop"}, PutBack).undone == []


def test_they_lie_where_a_host_keeps_its_part(tmp_path, monkeypatch):
    from types import SimpleNamespace

    from dbdyno.hosts.worker_side import parts_folder
    from dbdyno.run.fleet.member import folder_of

    monkeypatch.setenv("DBDYNO_STATE_DIR", str(tmp_path))
    assert folder_of(SimpleNamespace(identity="one", host="a")).parent == parts_folder()
    assert Path(parts_folder()).is_relative_to(tmp_path)
