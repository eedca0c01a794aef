"""What keeps Ray from TLS: each mistake is said with its variable, its file and what to do, before Ray reads any."""

import os
import subprocess
from dataclasses import replace

import pytest

from dbdyno.errors import HostError
from dbdyno.hosts.cluster import Cluster
from dbdyno.hosts.tls import AUTHORITY, CERTIFICATE, KEY, USE, Tls, look_at_tls, refuse_another, refuse_unlike
from tests.certificates import OPENSSL, authority, certificate, environment, openssl
from tests.documents import ROOT, blocks

pytestmark = pytest.mark.skipif(OPENSSL is None, reason="no openssl")
ADDRESS = "10.0.0.21"
AS_ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    authority(folder)
    authority(folder, "other")
    certificate(folder, "good", ADDRESS)
    certificate(folder, "elsewhere", "10.0.0.22")
    certificate(folder, "old", ADDRESS, days=-1)
    certificate(folder, "oneway", ADDRESS, more=["extendedKeyUsage=serverAuth"])
    certificate(folder, "strange", ADDRESS, by="other")
    (folder / "empty").write_text("")
    (folder / "locked").touch(mode=0o000)
    openssl("pkey", "-in", folder / "good.key", "-aes256", "-passout", "pass:x", "-out", folder / "secret.key")
    return folder


def test_what_is_well_set_is_on_and_says_whom_it_trusts(files):
    found = look_at_tls(environment(files, "good.crt", "good.key", "ca.crt"), ADDRESS)
    assert (found.on, found.wrong, len(found.authorities)) == (True, (), 1)
    assert found.authorities == look_at_tls(environment(files, "good.crt", "good.key", "ca.crt"), ADDRESS).authorities


def test_the_commands_of_the_page_make_such_files(tmp_path):
    shown = [block for block in blocks(ROOT / "docs/hosts.md") if block.text.startswith("openssl")]
    assert len(shown) == 2
    for block in shown:
        subprocess.run(["sh", "-ec", block.text], cwd=tmp_path, check=True, capture_output=True)
    found = look_at_tls(environment(tmp_path, "c1.crt", "c1.key", "ca.crt"), ADDRESS)
    assert (found.on, found.wrong) == (True, ())


@pytest.mark.parametrize("use", [None, "", "0", "false", "False"])
def test_without_it_no_file_is_looked_at(use):
    given = {CERTIFICATE: "/none"} | ({} if use is None else {USE: use})
    assert look_at_tls(given, ADDRESS) == Tls()


@pytest.mark.parametrize("use", ["1", "true", "True"])
def test_variables_that_are_lacking_are_all_named(use):
    found = look_at_tls({USE: use}, ADDRESS)
    remedy = f"is not set, and {USE} is; set it to the path of its file"
    assert found.wrong == tuple(f"{variable} {remedy}" for variable in (CERTIFICATE, KEY, AUTHORITY))


def test_a_word_that_ray_takes_for_no():
    assert look_at_tls({USE: "yes"}, ADDRESS).wrong == (
        "RAY_USE_TLS is 'yes', which Ray takes for no: set it to 1, or unset it",
    )


GONE = "{0}/none: No such file or directory; put the file there, or name another"
# Certificate, key, authority; which of them is named, and what is said of it; {0} is the folder.
WRONG = [
    ("none", "good.key", "ca.crt", CERTIFICATE, GONE),
    ("good.crt", "none", "ca.crt", KEY, GONE),
    ("good.crt", "good.key", "none", AUTHORITY, GONE),
    ("good.crt", ".", "ca.crt", KEY, "{0}: Is a directory; put the file there, or name another"),
    ("empty", "good.key", "ca.crt", CERTIFICATE, "{0}/empty: holds no certificate; give one in PEM"),
    ("good.crt", "good.key", "good.key", AUTHORITY, "{0}/good.key: holds no certificate; give one in PEM"),
    ("good.crt", "secret.key", "ca.crt", KEY,
     "{0}/secret.key: holds no key that can be read; give one in PEM without a passphrase"),
    ("good.crt", "old.key", "ca.crt", KEY,
     "{0}/old.key: is not the key of RAY_TLS_SERVER_CERT {0}/good.crt; give the two that were made together"),
    ("elsewhere.crt", "elsewhere.key", "ca.crt", CERTIFICATE,
     "{0}/elsewhere.crt: is not for 10.0.0.21; make one with subjectAltName=IP:10.0.0.21"),
    ("old.crt", "old.key", "ca.crt", CERTIFICATE,
     "{0}/old.crt: certificate has expired by this machine's clock; see date, or make a new one"),
    ("oneway.crt", "oneway.key", "ca.crt", CERTIFICATE,
     "{0}/oneway.crt: is not for both ends of a connection; make one for serverAuth and clientAuth"),
    ("strange.crt", "strange.key", "ca.crt", CERTIFICATE,
     "{0}/strange.crt: unable to get local issuer certificate; give one that RAY_TLS_CA_CERT {0}/ca.crt has signed"),
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: "-".join(one[:3]))
def test_each_mistake(files, wrong):
    *named, variable, said = wrong
    found = look_at_tls(environment(files, *named), ADDRESS)
    assert (found.on, found.wrong) == (True, (f"{variable} {said.format(files)}",))


def test_a_path_that_depends_on_the_folder(files):
    given = environment(files, "good.crt", "good.key", "ca.crt") | {KEY: "good.key"}
    assert look_at_tls(given, ADDRESS).wrong == (
        "RAY_TLS_SERVER_KEY is 'good.key'; give the path from the root: Ray runs in another folder",
    )


@pytest.mark.skipif(AS_ROOT, reason="root reads all files")
def test_a_key_that_this_user_may_not_read(files):
    found = look_at_tls(environment(files, "good.crt", "locked", "ca.crt"), ADDRESS)
    assert found.wrong == (f"{KEY} {files}/locked: Permission denied; let the user that Ray runs as read it",)


ON = Tls(on=True, authorities=("a", "b"))


def refused(here, there):
    with pytest.raises(HostError) as error:
        refuse_unlike(here, there)
    return str(error.value).splitlines()


def test_all_have_it_or_none():
    refuse_unlike(Tls(), {"c1": Tls(), "c2": Tls()})
    refuse_unlike(ON, {"c1": ON, "c2": replace(ON, authorities=("b", "c"))})
    how = "set it and its files there by /etc/environment, or SetEnv in its sshd_config, or unset it here"
    assert refused(ON, {"c1": ON, "c2": Tls()}) == [f"c2: RAY_USE_TLS is not set there, and is here; {how}"]
    assert refused(Tls(), {"c1": ON}) == [
        "c1: RAY_USE_TLS is set there, and not here; set it and its files in this shell, or unset it there"
    ]
    assert refused(ON, {"c1": replace(ON, authorities=("c",))}) == [
        "c1: RAY_TLS_CA_CERT there has no certificate of the one here; put the same file on all machines"
    ]


def test_what_is_wrong_on_any_machine_is_said_of_all_at_once():
    wrong = Tls(on=True, wrong=("one", "two"))
    assert refused(wrong, {"c1": wrong, "c2": Tls()}) == [
        "this machine: one", "this machine: two", "c1: one", "c1: two",
    ]  # fmt: skip


def test_a_cluster_that_is_up_otherwise_is_not_tried(files, monkeypatch):
    """Ray itself tries for three minutes and a half."""
    without = Cluster("lab", "x", address=ADDRESS)
    monkeypatch.delenv(USE, raising=False)
    refuse_another(without)
    with pytest.raises(
        HostError, match=r"^the cluster lab is up with TLS, and RAY_USE_TLS is not set here; set it and"
    ):
        refuse_another(replace(without, tls=True))
    for name, value in environment(files, "good.crt", "good.key", "ca.crt").items():
        monkeypatch.setenv(name, value)
    refuse_another(replace(without, tls=True))
    with pytest.raises(HostError, match=r"^the cluster lab is up without TLS, and RAY_USE_TLS is set here; unset it,"):
        refuse_another(without)
    monkeypatch.setenv(KEY, "/none")
    with pytest.raises(HostError, match=r"^this machine: RAY_TLS_SERVER_KEY /none: No such file or directory; put"):
        refuse_another(replace(without, tls=True))
