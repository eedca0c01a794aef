"""What is put on hosts: wheels of what runs here, taken in by a Python that has nothing."""

import hashlib
import json
import os
import platform
import stat
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dbdyno.errors import HostError
from dbdyno.hosts import bundle, installer
from dbdyno.hosts.frames import Installed, Lacking, Nothing
from dbdyno.hosts.ssh import Channel, EndedError, login_command, ssh_command

BOOT = "import sys; exec(sys.stdin.buffer.read(int(sys.argv[1])))"
PLACES = {"pluggy": "pluggy/__init__.py", "iniconfig": "iniconfig/__init__.py"}


@pytest.fixture
def wheels(tmp_path):
    return [bundle._wheel(metadata.distribution(name), tmp_path) for name in PLACES]


def test_a_wheel_is_what_is_installed_and_the_same_bytes_each_time(wheels, tmp_path):
    again = tmp_path / "again"
    again.mkdir()
    for one in wheels:
        assert hashlib.sha256(one.path.read_bytes()).hexdigest() == one.sha256
        assert bundle._wheel(metadata.distribution(one.name.partition("-")[0]), again).sha256 == one.sha256
        with zipfile.ZipFile(one.path) as opened:
            names = opened.namelist()
            record = opened.read(next(name for name in names if name.endswith("/RECORD"))).decode()
        assert PLACES[one.name.partition("-")[0]] in names
        assert sorted(line.partition(",")[0] for line in record.splitlines()) == sorted(names)
        assert not [name for name in names if name.endswith((".pyc", "direct_url.json"))]


def test_pip_takes_such_a_wheel(wheels, tmp_path):
    named = tmp_path / f"{wheels[1].name}-py3-none-any.whl"
    named.write_bytes(wheels[1].path.read_bytes())
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", tmp_path / "into", named], check=True)
    assert (tmp_path / "into/iniconfig/__init__.py").exists()


def test_our_own_has_the_programs_and_all_modules():
    files = bundle._files(metadata.distribution("dbdyno"))
    programs = {name.rpartition("/")[2] for name in files if ".data/scripts/" in name}
    assert programs == {"dbdyno-disk", "dbdyno-load", "dbdyno-probe"}
    assert {"dbdyno/cli/main.py", "dbdyno/_native.abi3.so", "dbdyno/hosts/installer.py"} <= files.keys()
    assert not [name for name in files if "__pycache__" in name]
    assert bundle.our_digest() == bundle.our_digest()


def by_packaging(*names):
    """The same by the package that reads requirements as pip does."""
    found, wanted = set(), list(names)
    while wanted:
        if (name := canonicalize_name(wanted.pop())) not in found:
            found.add(name)
            given = map(Requirement, metadata.requires(name) or [])
            wanted += [one.name for one in given if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


@pytest.mark.parametrize("names", [("dbdyno",), ("dask", "distributed"), ("pandas", "hypothesis", "duckdb")])
def test_all_that_is_needed_is_found_without_another_package(names, monkeypatch):
    wanted = by_packaging(*names)
    monkeypatch.setitem(sys.modules, "packaging", None)  # nothing that dbdyno needs brings it
    found = bundle.requirements_of(*names)
    assert wanted <= found.keys()
    assert names != ("dbdyno",) or wanted == found.keys()
    with pytest.raises(HostError, match="no-such-thing is not installed here as a package"):
        bundle.requirements_of("no_such.thing")


def asked(wheels, folder, **fields):
    given = {"name": "a", "folder": str(folder), "environment": "0123", "machine": platform.machine()}
    packages = [package.description for package in wheels]
    return {**given, "packages": packages, "python": list(sys.version_info[:2]), **fields}


@pytest.fixture
def host():
    """An installer at the other end of pipes, as ssh would start it."""
    source = Path(installer.__file__).read_bytes()
    with Channel("a", [sys.executable, "-I", "-c", BOOT, str(len(source))]) as channel:
        channel.send(source)
        yield channel


def test_packages_are_taken_in_and_seen_by_the_environment(host, wheels, tmp_path):
    folder = tmp_path / "there"
    lacking = host.ask_in_lines(asked(wheels, folder), Lacking).lacking
    assert lacking == [one.sha256 for one in wheels]
    for one in wheels:
        host.send(one.path.read_bytes())
    assert host.answer_in_lines(Installed).installed
    python = folder / "env-0123/bin/python"
    found = subprocess.run([python, "-c", "import pluggy; print(pluggy.__file__)"], capture_output=True, check=True)
    assert found.stdout.decode().startswith(f"{folder}/packages/{wheels[0].sha256}/pluggy")
    assert stat.S_IMODE((folder / "hosts/a").stat().st_mode) == 0o711, "others may pass, and see nothing"
    assert not list((folder / "packages").glob("*.part"))


def test_bytes_that_changed_on_the_way_are_refused(host, wheels, tmp_path):
    folder = tmp_path / "there"
    host.ask_in_lines(asked(wheels[:1], folder), Lacking)
    content = bytearray(wheels[0].path.read_bytes())
    content[100] ^= 1
    host.send(bytes(content))
    with pytest.raises(HostError, match=r"a: pluggy-[0-9.]+ arrived damaged: its SHA-256 differs"):
        host.answer_in_lines(Installed)
    assert not list((folder / "packages").iterdir())


REFUSED = [
    ({"python": [3, 99]}, r'runs on Python 3\.99: name the same version in the hosts file: python = "python3\.99"'),
    ({"machine": "vax"}, "and the packages are for vax"),
]


@pytest.mark.parametrize(("fields", "said"), REFUSED)
def test_a_host_that_can_not_run_it_says_so_before_anything_is_sent(host, wheels, tmp_path, fields, said):
    with pytest.raises(HostError, match=said):
        host.ask_in_lines(asked(wheels, tmp_path / "there", **fields), Lacking)
    assert not (tmp_path / "there/packages").exists()


def test_a_folder_that_others_can_write_to_is_refused(host, wheels, tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(HostError, match="must belong to the ssh user and be writable by no one else"):
        host.ask_in_lines(asked(wheels, folder), Lacking)


def test_what_is_not_there_is_said_and_nothing_is_made(host, tmp_path):
    assert host.ask_in_lines({**asked([], tmp_path / "there"), "packages": None}, Installed).installed is False
    assert not (tmp_path / "there/hosts").exists()


def test_a_login_shell_that_prints_and_a_host_that_goes_away():
    said = 'echo Welcome; read line; echo "dbdyno-hosts {}"; echo "root@x: Permission denied (publickey)." >&2'
    with Channel("x", ["sh", "-c", said], login="ssh x") as channel:
        assert channel.ask_in_lines({}, Nothing) == Nothing()
        with pytest.raises(
            HostError, match=r"^x: root@x: Permission denied \(publickey\); dbdyno asks for no password"
        ):
            channel.answer_in_lines(Nothing)
    with Channel("x", ["sh", "-c", "read line"]) as channel, pytest.raises(HostError, match="x: no answer in time"):
        channel.answer_in_lines(Nothing, 0.05)
    with pytest.raises(HostError, match="is not installed here"):
        Channel("x", ["no-such-ssh"])


ENDS = [
    ("Host key verification failed.", r"^x: Host key verification failed; log in once by hand \(ssh -F /c x\), "),
    ("ssh: connect to host 10.0.0.2 port 22: Connection refused", "refused; check that sshd runs there, on that"),
    ("ssh: connect to host 10.0.0.2 port 22: No route to host", "No route to host; check that it is on, and that its"),
    ("pyenv: python3.9: command not found\nNote: see help", "^x: pyenv: python3.9: command not found; install Python"),
    ("kex_exchange_identification: read: reset", r"^x: kex_exchange_identification: read: reset$"),
]  # fmt: skip


@pytest.mark.parametrize(("printed", "said"), ENDS)
def test_why_a_host_is_not_reached_has_a_remedy(printed, said):
    login = login_command("x", Path("/c"))
    with (
        Channel("x", ["sh", "-c", 'read line; printf "%s\n" "$1" >&2', "sh", printed], login=login) as channel,
        pytest.raises(EndedError, match=said),
    ):
        channel.ask_in_lines({}, Nothing)


def test_a_folder_that_can_not_be_made_is_named(host, wheels):
    with pytest.raises(HostError, match=r"^a: /proc/x: No such file or directory; name another folder"):
        host.ask_in_lines(asked(wheels, Path("/proc/x")), Lacking)


def test_ssh_asks_for_nothing_and_takes_no_word_for_an_option():
    command = ssh_command("root@db1", Path("/x/config"), ["python3", "-c", "print('a b')", "1"])
    assert command[:4] == ["ssh", "-T", "-F", "/x/config"]
    assert {"BatchMode=yes", "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes"} <= {*command}
    assert not any("StrictHostKeyChecking" in word for word in command)  # the user's own configuration decides
    assert command[-3:] == ["--", "root@db1", """python3 -c 'print('"'"'a b'"'"')' 1"""]
    assert json.dumps(command).count("BatchMode") == 1
    assert os.sep not in command[-2]


def test_a_folder_of_a_killed_one_is_made_anew_and_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "OURS", "iniconfig")
    folder = tmp_path / "wheels"
    (folder / "folder/x").mkdir(parents=True)
    with bundle.bundle(folder) as wheels:
        assert [*folder.iterdir()] == [wheels.packages[0].path]
    assert not folder.exists()
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match="Not a directory; dbdyno packs itself in"), bundle.bundle(tmp_path / "file/x"):
        pass
