"""Provisioning: a tree is whole or not there, what was downloaded survives a kill, and errors say what to do."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.errors import HostError, UserError
from dbdyno.mysql.settings import DISTRIBUTION, NOT_SERVED, PROVISIONED
from dbdyno.servers.sources import cache, source
from dbdyno.servers.sources.cache import PRODUCTS, Product, known_servers, tree_of
from dbdyno.servers.sources.installation import ENGINES, NoServerError, find_server
from dbdyno.servers.sources.maven import Maven
from dbdyno.servers.sources.npm import Npm
from dbdyno.servers.sources.source import check_sum, run_client
from dbdyno.system.files import file_sha256
from tests.support import Quiet, wait_for

DAEMON = '#!/bin/sh\necho "mysqld  Ver {} for Linux on x86_64 (MySQL Community Server)"\n'


class Files:
    """A source whose download is a file written here, which may be told to fail half-way."""

    kind, coordinates = "npm", "files"

    def __init__(self, version="9.1.0", fails=""):
        self.version, self.fails, self.fetched = version, fails, 0

    def fetch(self, downloads, progress):
        progress.step("downloading")
        done = downloads / "server"
        if not done.exists():
            self.fetched += 1
            done.write_text(DAEMON.format(self.version))
        if self.fails == "fetch":
            raise HostError("no answer")
        return {"server": file_sha256(done)}

    def unpack(self, downloads, files, tree):
        assert list(files) == ["server"]
        (tree / "bin").mkdir(mode=0o700)
        (tree / "bin/mysqld").write_bytes((downloads / "server").read_bytes())
        (tree / "half").write_text("")
        if self.fails == "unpack":
            raise HostError("no room")
        (tree / "half").unlink()


@pytest.fixture
def product(monkeypatch, request):
    """Put a product of its own into the catalogue, from a source that a test steers."""
    request.getfixturevalue("state")
    monkeypatch.setattr("dbdyno.servers.user.unprivileged", lambda argv: argv)
    monkeypatch.setattr(cache, "make_traversable", lambda folder: folder.mkdir(parents=True, exist_ok=True))

    def make(**given):
        files = Files(**given)
        monkeypatch.setitem(PRODUCTS, "mysql-9", Product("mysql-9", "a test", "9.", files, ("innodb",), 1, 1))
        return files

    return make


def test_the_catalogue_and_the_names_a_study_may_say_are_the_same():
    assert set(PRODUCTS) == set(PROVISIONED)
    assert DISTRIBUTION not in PRODUCTS
    for product in PRODUCTS.values():
        assert set(product.engines) <= ENGINES
        assert product.source.kind in {"Debian", "npm", "Maven"}


def test_added_found_listed_removed(product):
    product()
    assert not cache.is_installed("mysql-9")
    record = cache.add("mysql-9", Quiet())
    assert record["version"] == "9.1.0"
    assert list(record["files"]) == ["server"]
    found = find_server("mysql-9")
    assert found.daemon == cache.tree_of("mysql-9") / "bin/mysqld"
    assert found.daemon.parent.stat().st_mode & 0o777 == 0o755, "the server's user may read it"
    assert found.daemon.stat().st_mode & 0o777 == 0o755
    (listed,) = (one for one in known_servers() if one["name"] == "mysql-9")
    assert (listed["installed"], listed["version"], listed["problem"]) == (True, "9.1.0", "")
    assert json.loads((cache.tree_of("mysql-9") / cache.RECORD).read_text())["coordinates"] == "files"
    assert not (cache.servers_folder() / "mysql-9.part").exists()
    assert cache.remove("mysql-9")
    assert not cache.is_installed("mysql-9")
    assert not cache.remove("mysql-9")


def test_adding_twice_fetches_once(product):
    files = product()
    assert cache.add("mysql-9", Quiet()) == cache.add("mysql-9", Quiet())
    assert files.fetched == 1


@pytest.mark.parametrize("fails", ["fetch", "unpack"])
def test_what_failed_is_not_there_and_goes_on_from_what_was_downloaded(product, fails):
    files = product(fails=fails)
    with pytest.raises(HostError):
        cache.add("mysql-9", Quiet())
    assert not cache.is_installed("mysql-9")
    with pytest.raises(UserError, match="not on this host"):
        find_server("mysql-9")
    files.fails = ""
    cache.add("mysql-9", Quiet())
    assert files.fetched == 1
    assert not (cache.tree_of("mysql-9") / "half").exists(), "nothing of the earlier tree is left"


def test_a_registry_whose_file_has_no_end_fills_no_disk(product, tmp_path, monkeypatch):
    endless = tmp_path / "npm"
    endless.write_text("#!/bin/sh\nwhile :; do truncate -s +1T served; sleep 0.01; done\n")  # which takes no room
    endless.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    product()
    monkeypatch.setitem(PRODUCTS, "mysql-9", replace(PRODUCTS["mysql-9"], source=Npm("p", "9.1.0", "", {})))
    with pytest.raises(HostError, match=r"mysql-9: the download was ended after [\d,]+ MB, of at most"):
        cache.add("mysql-9", Quiet())
    assert not cache.is_installed("mysql-9")
    assert cache.remove("mysql-9")


def test_a_registry_that_serves_another_release_by_now(product):
    product(version="10.0.1")
    with pytest.raises(HostError, match=r"mysql-9: npm now serves version 10\.0\.1"):
        cache.add("mysql-9", Quiet())
    assert not cache.is_installed("mysql-9")


def test_what_an_unfinished_try_left_can_be_removed(product):
    product(fails="unpack")
    with pytest.raises(HostError):
        cache.add("mysql-9", Quiet())
    assert cache.remove("mysql-9")
    assert not (cache.servers_folder() / "mysql-9.part").exists()


def test_a_full_disk_is_told_of_before_anything_is_fetched(product, monkeypatch):
    files = product()
    monkeypatch.setitem(PRODUCTS, "mysql-9", replace(PRODUCTS["mysql-9"], download_mb=10**9))
    with pytest.raises(HostError, match=r"mysql-9 needs \d+ MB in .*/servers, which has \d+ MB free; make room"):
        cache.add("mysql-9", Quiet())
    assert files.fetched == 0


def test_another_machine(product, monkeypatch):
    product()
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(HostError, match="there are builds for x86_64 only, and this machine is riscv64"):
        cache.add("mysql-9", Quiet())


def test_two_at_once(product):
    product()
    cache.servers_folder().mkdir(parents=True)
    lock = cache.servers_folder() / "mysql-9.lock"
    holds = "import fcntl,sys; f=open(sys.argv[1],'w'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", holds, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(HostError, match="another dbdyno is adding or removing mysql-9"):
            cache.add("mysql-9", Quiet())
        other.kill()
    assert cache.add("mysql-9", Quiet())["version"] == "9.1.0", "a lock ends with its holder"


def test_a_server_that_runs_is_not_removed(product):
    product()
    cache.add("mysql-9", Quiet())
    program = cache.tree_of("mysql-9") / "bin/sleep"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    running = subprocess.Popen([program, "60"])
    try:
        wait_for(lambda: cache._running(cache.tree_of("mysql-9")) == [running.pid])
        with pytest.raises(HostError, match=rf"mysql-9 is running \(pid {running.pid}\)"):
            cache.remove("mysql-9")
    finally:
        running.kill()
        running.wait()
    assert cache.remove("mysql-9")


@pytest.mark.usefixtures("state")
def test_an_unknown_server():
    with pytest.raises(UserError, match=r"'mysql-3' is not a server that dbdyno can get; known are mariadb-10\.5, "):
        cache.add("mysql-3", Quiet())
    with pytest.raises(UserError):
        cache.remove("../../etc")


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Put a registry's client of our own first on PATH."""

    def make(name, script):
        folder = tmp_path / "path"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    return make


def npm(data=b"", **given):
    place = {"package/mysqld": "bin/mysqld"}
    sha256 = hashlib.sha256(data).hexdigest()
    return Npm(**{"package": "a-server", "version": "1.0", "sha256": sha256, "places": place, **given})


def test_a_registry_that_does_not_answer(program, tmp_path):
    program("npm", "echo npm error code ENOTFOUND >&2; echo 'npm error request failed' >&2; exit 1")
    with pytest.raises(HostError) as failed:
        npm().fetch(tmp_path, Quiet())
    said = str(failed.value)
    assert said.startswith("npm pack a-server@1.0 ")
    assert said.endswith(
        "exit 1: npm error code ENOTFOUND / npm error request failed; does npm reach its registry? see npm ping"
    )


def test_a_client_that_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match=r"^npm is not installed; install it: apt-get install npm$"):
        npm().fetch(tmp_path, Quiet())


def test_a_client_that_hangs_is_ended(program, tmp_path, monkeypatch):
    program("npm", "sleep 60")
    monkeypatch.setattr(source, "STALL_SECONDS", 0.5)
    with pytest.raises(HostError, match=r"nothing arrived for 0\.5 s, so it was ended"):
        npm().fetch(tmp_path, Quiet())


def test_another_file_than_the_recorded_one_is_removed(program, tmp_path):
    program(
        "npm",
        'for word; do case "$word" in --pack-destination=*) d="${word#*=}";; esac; done; echo 2 > $d/a-server-1.0.tgz',
    )
    with pytest.raises(
        HostError, match=r"a-server-1\.0\.tgz: its sha256 is 53c\w+, but \w+ was expected; it was removed"
    ):
        npm(b"1\n").fetch(tmp_path, Quiet())
    assert not (tmp_path / "a-server-1.0.tgz").exists()
    assert list(npm(b"2\n").fetch(tmp_path, Quiet())) == ["a-server-1.0.tgz"]


def test_a_finished_download_is_not_fetched_again(program, tmp_path):
    program("npm", "exit 1")
    (tmp_path / "a-server-1.0.tgz").write_bytes(b"whole")
    npm(b"whole").fetch(tmp_path, Quiet())


def test_a_zip_of_one_platform_is_called_as_maven_calls_it():
    source = Maven("g", "a", "1", "", {}, packaging="zip", classifier="linux-x86_64")
    assert (source.coordinates, source.file) == ("g:a:1:zip:linux-x86_64", "a-1-linux-x86_64.zip")


def test_what_a_build_needs_of_the_host_is_said_before_anything_is_downloaded(product, monkeypatch):
    files = product()
    monkeypatch.setitem(PRODUCTS, "mysql-9", replace(PRODUCTS["mysql-9"], libraries={"libnone.so.7": "libnone7"}))
    with pytest.raises(HostError, match=r"mysql-9 needs libnone\.so\.7 of this host; .*apt-get install libnone7"):
        cache.add("mysql-9", Quiet())
    assert files.fetched == 0


def test_what_no_registry_has_is_said_in_a_sentence(product):
    product()
    with pytest.raises(UserError, match=r"mysql-8\.4: no package registry .* servers add URL\|FILE --sha256 HEX$"):
        cache.product_named("mysql-8.4")
    listed = {one["name"]: one for one in known_servers()}
    assert set(NOT_SERVED) <= set(listed)
    assert not listed["percona-8.0"]["available"]
    assert "servers add URL|FILE" in listed["percona-8.0"]["problem"]


def test_a_series_is_the_newest_release_that_was_added(product):
    product()
    with pytest.raises(NoServerError, match=r"percona-8\.4 is not on this host; get it: dbdyno servers add URL\|FILE"):
        find_server("percona-8.4")
    for release in ("8.4.9", "8.4.21", "8.4.3"):
        daemon = tree_of(f"percona-{release}") / "bin/mysqld"
        daemon.parent.mkdir(parents=True)
        daemon.write_text(DAEMON.format(release))
        daemon.chmod(0o755)
        record = {"version": release, "source": "file", "coordinates": "/a.tar.gz", "engines": [], "bytes": 0}
        (tree_of(f"percona-{release}") / "server.json").write_text(json.dumps(record))
    assert find_server("percona-8.4").version == "8.4.21"
    listed = {one["name"] for one in known_servers()}
    assert {"percona-8.4.3", "percona-8.0"} <= listed
    assert "percona-8.4" not in listed, "of it there is a release"


def test_checksums(tmp_path):
    (tmp_path / "f").write_bytes(b"abc")
    check_sum(tmp_path / "f", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    with pytest.raises(HostError):
        check_sum(tmp_path / "f", "0" * 64)
    assert not (tmp_path / "f").exists()


def test_what_a_client_says_reaches_no_terminal_as_a_command(program, tmp_path):
    program("npm", r"printf '\033]0;evil\007' >&2; exit 3")
    with pytest.raises(HostError) as failed:
        run_client(["npm"], tmp_path, remedy="look", package="npm")
    assert str(failed.value) == "npm: exit 3: ?]0;evil?; look"


APT = """\
echo "$@" >> {log}
case "$*" in
  *--format*) printf '{mirrors}';;
  dump*) echo 'APT::Update::Post-Invoke:: "touch {log}.hook";';;
  *--print-uris*) echo "'http://x/a.deb' a_1.deb 3 SHA256:{sha256}";;
  *--download-only*) cp "$APT_CONFIG" {log}.conf; printf {content} > {archives}/a_1.deb;;
esac
"""


@pytest.fixture
def apt(program, tmp_path):
    """Put an apt-get on PATH that serves one package."""

    def make(mirrors=r"bookworm\tmirror:/debian\nbookworm-security\tmirror:/security\n", content="abc"):
        script = APT.format(
            log=tmp_path / "log",
            mirrors=mirrors,
            content=content,
            archives=tmp_path / "downloads/archives",
            sha256="ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        )
        program("apt-get", script)
        program("apt-config", script)
        (tmp_path / "downloads").mkdir()
        return tmp_path / "downloads"

    return make


DEBIAN = PRODUCTS["mariadb-10.5"].source


def test_packages_come_by_the_host_s_own_mirrors_without_its_hooks_or_its_packages(apt, tmp_path):
    downloads = apt()
    assert list(DEBIAN.fetch(downloads, Quiet())) == ["a_1.deb"]
    config = (tmp_path / "log.conf").read_text()
    assert "Invoke" not in config
    assert f'Dir::State::status "{downloads}/status";' in config
    assert (downloads / "status").read_bytes() == b""
    calls = (tmp_path / "log").read_text()
    assert "--download-only install mariadb-server-core-10.5" in calls


def test_a_package_with_another_checksum_than_the_signed_list_s(apt):
    downloads = apt(content="abd")
    with pytest.raises(HostError, match=r"a_1\.deb: its sha256 is"):
        DEBIAN.fetch(downloads, Quiet())
    assert not (downloads / "archives/a_1.deb").exists()


@pytest.mark.parametrize(
    ("mirrors", "lacking"),
    [(r"noble\tmirror:/ubuntu\n", "mirror"), (r"bookworm\tmirror:/debian\n", "security mirror"), ("", "mirror")],
)
def test_a_host_without_a_debian_mirror(apt, mirrors, lacking):
    with pytest.raises(HostError, match=f"apt's sources on this host name no Debian {lacking}, which "):
        DEBIAN.fetch(apt(mirrors=mirrors), Quiet())


def test_no_source_of_the_catalogue_names_where_it_comes_from():
    for product in PRODUCTS.values():
        assert "://" not in repr(product)
