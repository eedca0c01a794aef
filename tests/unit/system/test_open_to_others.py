"""What another user could change is seen, however a path leads to it."""

import os

import pytest

from dbdyno.system.files import why_open_to_others

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
OTHER = 65534


@pytest.fixture
def file(tmp_path):
    for folder in (tmp_path / "a", tmp_path / "a/b"):
        folder.mkdir(mode=0o755)
    made = tmp_path / "a/b/file"
    made.touch(mode=0o644)
    return made


def test_what_only_root_can_change_is_not_open(file, tmp_path):
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "a").chmod(0o1777)  # as /tmp: nobody renames what is another's
    for path in (file, tmp_path / "link", tmp_path / "a/../link", tmp_path / "a/b"):
        assert why_open_to_others(path) == ""


@pytest.mark.parametrize(("mode", "group"), [(0o646, 0), (0o666, 0), (0o664, OTHER), (0o622, OTHER)])
def test_a_file_that_others_write(file, mode, group):
    os.chown(file, 0, group)
    file.chmod(mode)
    assert why_open_to_others(file) == f"{file} can be written by others; chmod go-w {file}"


def test_a_file_that_only_its_user_s_own_group_writes(file):
    """So files are under umask 002, which many have, as each user is alone in a group of the same number."""
    file.chmod(0o664)
    assert why_open_to_others(file) == ""


def test_who_became_root_by_sudo_may_have_it_at_home(file, monkeypatch):
    os.chown(file, OTHER, OTHER)
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    assert why_open_to_others(file) == ""
    monkeypatch.setenv("SUDO_UID", "1000")
    assert why_open_to_others(file).startswith(f"{file} belongs to another user")


def test_a_file_of_another_user(file):
    os.chown(file, OTHER, 0)
    assert why_open_to_others(file) == f"{file} belongs to another user (uid 65534); have it in a place of your own"


def test_any_folder_on_the_way(file, tmp_path):
    above = tmp_path / "a"
    above.chmod(0o777)
    said = f"{above} can be written by others, who could replace what is in it; chmod go-w {above}"
    assert why_open_to_others(file) == said
    above.chmod(0o775)
    assert why_open_to_others(file) == ""  # root's own group
    os.chown(above, 0, OTHER)
    assert why_open_to_others(file) == said
    os.chown(above, OTHER, 0)
    above.chmod(0o755)
    assert why_open_to_others(file).startswith(f"{above} belongs to another user")


@pytest.mark.usefixtures("file")
def test_links_on_the_way_are_followed_one_by_one(tmp_path):
    """Another user's link could lead elsewhere tomorrow, and so could one in a folder that is open."""
    middle = tmp_path / "middle"
    middle.mkdir()
    (middle / "second").symlink_to("../a/b")
    (tmp_path / "first").symlink_to(middle / "second")
    path = tmp_path / "first/file"
    assert why_open_to_others(path) == ""
    middle.chmod(0o777)
    assert why_open_to_others(path).startswith(f"{middle} can be written by others")
    middle.chmod(0o755)
    os.chown(middle / "second", OTHER, OTHER, follow_symlinks=False)
    assert why_open_to_others(path).startswith(f"{middle}/second belongs to another user")


def test_links_in_a_circle_and_what_is_not_there_are_errors(tmp_path):
    (tmp_path / "round").symlink_to("round")
    for path in (tmp_path / "round", tmp_path / "none/x"):
        with pytest.raises(OSError, match=str(tmp_path)):
            why_open_to_others(path)
