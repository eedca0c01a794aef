"""Kept images: whole or not at all, never a damaged one, the one used longest ago goes first."""

import json
import os
import random
import shutil

import pytest

from dbdyno.cli.images import clear
from dbdyno.errors import TrialError, UserError
from dbdyno.run.images import (
    LIMIT_BYTES,
    adding,
    arriving,
    digest,
    find,
    images_folder,
    kept_images,
    limit_bytes,
    make_room,
)
from dbdyno.stack.space import bytes_on_disk
from dbdyno.stack.undo_log import Journal
from dbdyno.system.locks import only_one

MB = 1 << 20


@pytest.fixture
def journal(state):
    made = Journal("test")
    yield made
    made.close()
    assert list((state / "journals").iterdir()) == []


@pytest.fixture
def keep(journal):
    """Keep an image of so many MB, used at a second of 1970."""

    def make(key, megabytes=1, used_at=None):
        with adding(key, f"about {key}", 1.5, journal) as part:
            (part / "tree").mkdir()
            (part / "tree/data").write_bytes(os.urandom(megabytes * MB))
            (part / "tree/link").symlink_to("data")
        if used_at is not None:
            os.utime(images_folder() / key / "image.json", (used_at, used_at))
        return images_folder() / key

    return make


def keys():
    return [one.key for one in kept_images()]


def test_what_was_kept_is_found_and_counts_as_used(keep):
    keep("a", used_at=10)
    keep("b", used_at=20)
    assert keys() == ["b", "a"]
    found = find("a")
    assert (found.key, found.about, found.seconds) == ("a", "about a", 1.5)
    assert found.bytes >= MB
    assert keys() == ["a", "b"]
    assert find("c") is None


def spoil(path):
    """Change one byte in the middle."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))


DAMAGES = {
    "a byte": lambda image: spoil(image / "tree/data"),
    "a cut": lambda image: os.truncate(image / "tree/data", MB - 1),
    "a file more": lambda image: (image / "tree/more").touch(),
    "a file less": lambda image: (image / "tree/data").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_image_is_never_used(keep, damage):
    damage(keep("a"))
    with pytest.raises(TrialError, match="was damaged; it is removed"):
        find("a")
    assert find("a") is None
    assert list(images_folder().iterdir()) == []


@pytest.mark.parametrize("record", ["", "{", "[]", '{"about": "x"}'])
def test_an_image_without_its_record_is_none(keep, record):
    (keep("a") / "image.json").write_text(record)
    assert find("a") is None
    assert keys() == []
    keep("b")
    assert [path.name for path in images_folder().iterdir()] == ["b"]


class KilledError(Exception):
    pass


def test_one_that_was_not_finished_is_not_found(journal, keep):
    def interrupted():
        with adding("a", "", 0.0, journal) as part:
            (part / "content").write_bytes(b"half")
            raise KilledError

    with pytest.raises(KilledError):
        interrupted()
    assert list(images_folder().iterdir()) == []
    (images_folder() / ".part-killed").mkdir()  # as SIGKILL would leave it, were it not for the undo journal
    assert keys() == []
    keep("b")
    assert [path.name for path in images_folder().iterdir()] == ["b"]


@pytest.mark.parametrize("damage", [None, *DAMAGES.values()], ids=["whole", *DAMAGES])
def test_one_of_another_host_counts_only_whole(keep, journal, tmp_path, damage):
    sent = keep("a").rename(tmp_path / "a")
    sha256 = json.loads((sent / "image.json").read_text())["sha256"]

    def take():
        with arriving("a", sha256, MB, set(), journal) as into:
            assert into.parent.is_dir()
            shutil.copytree(sent, into, symlinks=True)
            if damage:
                damage(into)

    if damage:
        with pytest.raises(TrialError, match="arrived damaged"):
            take()
        assert list(images_folder().iterdir()) == []
    else:
        take()
        assert (find("a").sha256, find("a").seconds) == (sha256, 1.5)
        assert [path.name for path in images_folder().iterdir()] == ["a"]


def test_one_for_which_there_is_no_room_is_not_taken(journal, monkeypatch):
    monkeypatch.setenv("DBDYNO_IMAGES_MAX", "1MiB")
    with (
        pytest.raises(TrialError, match="more than all images may"),
        arriving("a", "", 2 * MB, set(), journal),
    ):
        pass


def test_one_of_the_same_key_is_replaced(keep):
    keep("a", 1)
    keep("a", 2)
    assert find("a").bytes >= 2 * MB


def test_the_one_used_longest_ago_goes_first_but_none_in_use(keep, monkeypatch):
    for at, key in enumerate("abcd"):
        keep(key, used_at=at)
    one = bytes_on_disk(images_folder() / "a")
    monkeypatch.setenv("DBDYNO_IMAGES_MAX", f"{5 * one}B")
    make_room(one, set())
    assert keys() == ["d", "c", "b", "a"]
    make_room(2 * one, {"a"})
    assert keys() == ["d", "c", "a"]
    with pytest.raises(TrialError, match="more than all images may"):
        make_room(6 * one, set())
    with pytest.raises(TrialError, match="in use leave no room"):
        make_room(3 * one, {"a", "c", "d"})
    assert keys() == ["d", "c", "a"]


def test_the_limit(monkeypatch, state):
    monkeypatch.delenv("DBDYNO_IMAGES_MAX", raising=False)
    assert 0 < limit_bytes() <= LIMIT_BYTES
    monkeypatch.setenv("DBDYNO_IMAGES_MAX", "3GiB")
    assert limit_bytes() == 3 << 30
    monkeypatch.setenv("DBDYNO_IMAGES_MAX", "0")
    assert limit_bytes() == 0
    monkeypatch.setenv("DBDYNO_IMAGES_MAX", "much")
    with pytest.raises(UserError, match="DBDYNO_IMAGES_MAX: is not a size"):
        limit_bytes()
    assert state.exists()


def test_holes_and_zeros_are_the_same_in_a_digest(tmp_path):
    rng = random.Random(1)
    for name in ("sparse", "full"):
        (tmp_path / name).mkdir()
    size, spots = 9 * MB + 123, [(rng.randrange(9 * MB), rng.randbytes(5000)) for _ in range(4)]
    with (tmp_path / "sparse/content").open("wb") as sparse, (tmp_path / "full/content").open("wb") as full:
        sparse.truncate(size)
        full.write(bytes(size))
        for file in (sparse, full):
            for at, content in spots:
                file.seek(at)
                file.write(content)
    assert bytes_on_disk(tmp_path / "sparse") < bytes_on_disk(tmp_path / "full")
    assert digest(tmp_path / "sparse") == digest(tmp_path / "full")
    spoil(tmp_path / "full/content")
    assert digest(tmp_path / "sparse") != digest(tmp_path / "full")


def test_clear(keep, capsys):
    for key in ("aa", "ab", "c"):
        keep(key)
    with pytest.raises(UserError, match="'a' names 2 images"):
        clear("a", json_=False)
    with only_one("run a.toml", wait=False, say=print), pytest.raises(UserError, match=r"run a\.toml"):
        clear("aa", json_=False)
    clear("aa", json_=False)
    assert set(keys()) == {"ab", "c"}
    capsys.readouterr()
    clear("", json_=True)
    assert {one["key"] for one in json.loads(capsys.readouterr().out)["removed"]} == {"ab", "c"}
    assert keys() == []
    clear("", json_=False)
    assert capsys.readouterr().out == "there is no image\n"


def test_what_is_told_to_programs(keep):
    keep("a", used_at=0)
    assert json.loads(json.dumps(kept_images()[0].shown())) == {
        "key": "a",
        "about": "about a",
        "bytes": bytes_on_disk(images_folder() / "a"),
        "prepared_in_seconds": 1.5,
        "used_at": "1970-01-01T00:00:00Z",
    }
