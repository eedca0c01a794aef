"""Ray's TLS over hosts that are brought up: all of it encrypted, nobody answered without a certificate of ours.

In ``make test-all`` only.
"""

import json
import socket
import ssl
from contextlib import contextmanager, suppress

import pytest

from dbdyno.hosts.tls import AUTHORITY, CERTIFICATE, KEY, USE
from tests.certificates import OPENSSL, authority, certificate
from tests.host.test_hosts import Desk
from tests.lab import lab, lab_lacking
from tests.support import dbdyno

PORTS = {0: "node manager", 1: "objects", 99: "head"}  # of Ray, from a node's first; others speak no gRPC
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # as each client of gRPC begins
SWEEP = ["--rw", "randread", "--device", "hdd-7200,ssd-sata", "--seconds", "2s", "--repeat", "2"]

pytestmark = [
    pytest.mark.host,
    pytest.mark.long,
    pytest.mark.drawn(0),
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(lab_lacking()), reason=lab_lacking()),
    pytest.mark.skipif(OPENSSL is None, reason="no openssl"),
]


class TlsDesk(Desk):
    """One whose machines have a certificate each."""

    def __init__(self, made):
        super().__init__(made)
        self.files = made.folder / "tls"
        self.files.mkdir()
        authority(self.files)
        self.variables = certificate(self.files, "here", made.here)
        for name in made.names:
            self.give(name, certificate(self.files, name, made.address(name)))

    def give(self, name, variables):
        """Have the sessions of a host's ssh these variables."""
        self.lab.silence(name)
        self.lab.listen(name, environment=variables)

    def type(self, *words, without=()):
        """Type a command where the variables are set."""
        unset = [word for variable in without for word in ("-u", variable)]
        given = [f"{variable}={value}" for variable, value in self.variables.items()]
        return dbdyno(*words, state=self.state, prefix=["env", *given, *(["env", *unset] if unset else [])])

    def hosts(self, verb, *words, code=0):
        done = self.type("hosts", verb, self.inventory, *words)
        assert done.returncode == code, done.stderr
        return done


@pytest.fixture(scope="module")
def desk():
    with lab("c1", "c2") as made:
        yield TlsDesk(made)


@pytest.fixture(scope="module")
def up(desk):
    """All hosts are up, and were before: the ports of the first time are free again."""
    for again in (True, False):
        desk.hosts("up")
        if again:
            desk.hosts("down")
            assert desk.left() == []
    yield desk
    desk.hosts("down")
    assert desk.left() == []


def test_what_is_wrong_on_any_machine_is_said_before_anything_is_started(desk):
    given = certificate(desk.files, "moved", "10.9.9.9")
    desk.give("c1", {**given, AUTHORITY: "/none"})
    desk.give("c2", {})
    gone = f"c1: {AUTHORITY} /none: No such file or directory; put the file there, or name another"
    assert desk.hosts("up", code=1).stderr.splitlines()[-1] == f"dbdyno: {gone}"
    desk.give("c1", given)
    moved, own = given[CERTIFICATE], desk.lab.address("c1")
    other = f"{moved}: is not for {own}; make one with subjectAltName=IP:{own}"
    assert desk.hosts("up", code=1).stderr.splitlines()[-1] == f"dbdyno: c1: {CERTIFICATE} {other}"
    desk.give("c1", certificate(desk.files, "c1", own))
    assert f"dbdyno: c2: {USE} is not set there, and is here; set it" in desk.hosts("up", code=1).stderr
    desk.give("c2", certificate(desk.files, "c2", desk.lab.address("c2")))
    assert desk.left() == []
    assert not (desk.state / "hosts/clusters/lab/cluster.json").exists()


def test_all_hosts_are_there_and_simulate_as_one_host_does(up):
    found, problem = up.status()
    assert (problem, [one["ready"] for one in found.values()]) == ("", [True, True])
    over = up.type("simulate", *SWEEP, "--hosts", up.inventory, "--json")
    here = up.type("simulate", *SWEEP, "--json")
    assert over.returncode == here.returncode == 0, over.stderr
    assert over.stdout == here.stdout
    assert json.loads(here.stdout)
    assert "is lost" not in over.stderr


@contextmanager
def connection(desk, place, tls=None):
    """A connection to a port of this machine's node, as a client with these settings of TLS makes it."""
    with socket.create_connection((desk.lab.here, desk.lab.first_port + place), 5) as plain:
        if tls is None:
            yield plain
        else:
            with tls.wrap_socket(plain, server_hostname=desk.lab.here) as encrypted:
                yield encrypted


def answer(desk, place, tls=None):
    """What a port says to a client of gRPC; nothing where it hangs up."""
    with suppress(ssl.SSLError, ConnectionError), connection(desk, place, tls) as one:
        one.settimeout(10)
        one.sendall(HELLO)
        return one.recv(100)
    return b""


def client(desk, *own):
    """A client's TLS, with a certificate of its own or without."""
    context = ssl.create_default_context(cafile=desk.files / "ca.crt")
    context.set_alpn_protocols(["h2"])
    if own:
        context.load_cert_chain(*own)
    return context


@pytest.mark.parametrize("place", PORTS, ids=PORTS.get)
def test_nobody_is_answered_without_a_certificate_that_ours_signed(up, place):
    authority(up.files, "theirs")
    theirs = certificate(up.files, "stranger", up.lab.here, by="theirs")
    assert answer(up, place, client(up, up.variables[CERTIFICATE], up.variables[KEY])) != b"", "it answers us"
    assert answer(up, place, client(up, theirs[CERTIFICATE], theirs[KEY])) == b""
    assert answer(up, place, client(up)) == b""
    assert answer(up, place) == b"", "in plain words"


def test_a_shell_without_it_is_told_at_once(up):
    done = up.type("hosts", "status", up.inventory, without=[USE])
    said = f"the cluster lab is up with TLS, and {USE} is not set here; set it and its files as for dbdyno hosts up"
    assert done.stdout.splitlines()[-1] == said
    done = up.type("simulate", *SWEEP, "--hosts", up.inventory, without=[USE])
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, f"dbdyno: {said}")
