"""A vendor's archive becomes a server that studies name: made here of the installed one, and signed."""

import hashlib
import json
import shutil
import subprocess
import tarfile

import pytest

from dbdyno.servers.sources.installation import find_server
from tests.support import dbdyno


@pytest.fixture(scope="module")
def vendors_archive(tmp_path_factory):
    """An archive as a vendor's is laid out, of the distribution's server."""
    installed = find_server("mariadb")
    path = tmp_path_factory.mktemp("vendor") / "mariadb-linux-x86_64.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        archive.add(installed.daemon, "mariadb-linux-x86_64/bin/mariadbd")
        archive.add(installed.share, "mariadb-linux-x86_64/share")
    return path


def test_an_archive_becomes_a_server_and_goes_again(vendors_archive, state):
    digest = hashlib.sha256(vendors_archive.read_bytes()).hexdigest()
    record = json.loads(dbdyno("servers", "add", vendors_archive, f"--sha256={digest}", "--json", state=state).stdout)
    version = find_server("mariadb").version
    assert record["version"] == version
    assert record["name"] == f"mariadb-{version.partition('-')[0]}"
    listed = {server["name"]: server for server in json.loads(dbdyno("servers", "--json", state=state).stdout)}
    assert listed[record["name"]]["installed"]
    assert find_server(record["name"]).version == version
    again = dbdyno("servers", "add", vendors_archive, f"--sha256={digest}", state=state)
    assert again.returncode == 1
    assert "is here already" in again.stderr
    dbdyno("servers", "remove", record["name"], state=state)
    assert record["name"] not in dbdyno("servers", state=state).stdout


def test_a_signature_counts_only_if_it_is_of_the_given_key(vendors_archive, state, tmp_path):
    if shutil.which("gpg") is None:
        pytest.skip("gpg is not installed")
    keys = {name: _signed(vendors_archive, tmp_path / name) for name in ("vendor", "other")}
    signature, key = keys["vendor"]
    _, other_key = keys["other"]
    wrong = dbdyno("servers", "add", vendors_archive, f"--signature={signature}", f"--key={other_key}", state=state)
    assert wrong.returncode == 1
    assert "was signed with another key" in wrong.stderr
    added = dbdyno("servers", "add", vendors_archive, f"--signature={signature}", f"--key={key}", "--json", state=state)
    dbdyno("servers", "remove", json.loads(added.stdout)["name"], state=state)


def _signed(archive, home):
    """A key of its own, and a signature by it; its agent is ended."""
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--batch", "--quiet", "--homedir", home, "--passphrase", ""]
    signature, key = home / "archive.sig", home / "key.asc"
    try:
        subprocess.run([*gpg, "--quick-gen-key", f"{home.name}@example", "ed25519", "sign", "never"], check=True)
        subprocess.run([*gpg, "--output", signature, "--detach-sign", archive], check=True)
        subprocess.run([*gpg, "--armor", "--output", key, "--export"], check=True)
    finally:
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False)
    return signature, key
