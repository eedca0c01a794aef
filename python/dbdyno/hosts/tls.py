"""TLS of Ray, which its own environment variables set: looked at on each machine before anything is started.

Each process of Ray reads them by itself. What is wrong with them shows there as a connection that is tried again for
minutes, without a reason.
"""

import hashlib
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.errors import HostError

if TYPE_CHECKING:
    from dbdyno.hosts.cluster import Cluster  # which brings what reads files of hosts, and an agent reads none

USE = "RAY_USE_TLS"
CERTIFICATE, KEY, AUTHORITY = "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT"
FILES = (CERTIFICATE, KEY, AUTHORITY)
HERE = "this machine"
_ON, _OFF = {"1", "true"}, {"", "0", "false"}
_STEPS_MAX = 10  # a handshake takes three, by turns
# Why a certificate is not accepted, by OpenSSL's numbers (x509_vfy.h).
_OTHER_NAME = {62, 64}
_PURPOSE = 26
_TIME = {9, 10}


@dataclass(frozen=True)
class Tls:
    """TLS as the environment of a machine sets it."""

    on: bool = False
    wrong: tuple[str, ...] = ()  # a sentence for each thing that would keep Ray from it
    authorities: tuple[str, ...] = ()  # SHA-256 of each certificate that is trusted


def is_on(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether Ray uses TLS there."""
    return environment.get(USE, "").lower() in _ON


def look_at_tls(environment: Mapping[str, str], address: str) -> Tls:
    """TLS of this machine, which others know by ``address``."""
    use = environment.get(USE, "")
    if use.lower() in _OFF:
        return Tls()
    if use.lower() not in _ON:
        return Tls(wrong=(f"{USE} is {use!r}, which Ray takes for no: set it to 1, or unset it",))
    if unreadable := [said for variable in FILES for said in _unreadable(variable, environment)]:
        return Tls(on=True, wrong=tuple(unreadable))
    return _with_files(environment[CERTIFICATE], environment[KEY], environment[AUTHORITY], address)


def _with_files(certificate: str, key: str, authority: str, address: str) -> Tls:
    """TLS that is on, with files that can be read."""
    try:
        asking = _context(ssl.PROTOCOL_TLS_CLIENT, certificate, key, authority)
        asked = _context(ssl.PROTOCOL_TLS_SERVER, certificate, key, authority)
        _shake_hands(asking, asked, address)
    except _UnfitError as error:
        wrong = str(error)
    except ssl.SSLCertVerificationError as error:
        wrong = _remedied(error, certificate, authority, address)
    except ssl.SSLError as error:
        wrong = f"{CERTIFICATE} {certificate}: {error.reason or error}"
    else:
        trusted = [hashlib.sha256(one).hexdigest() for one in asking.get_ca_certs(binary_form=True)]
        return Tls(on=True, authorities=tuple(trusted))
    return Tls(on=True, wrong=(wrong,))


def refuse_unlike(here: Tls, there: Mapping[str, Tls]) -> None:
    """Raise ``HostError`` unless all machines have TLS or none has, fit for Ray, and each trusts the others."""
    problems = [f"{name}: {said}" for name, one in {HERE: here, **there}.items() for said in one.wrong]
    if not problems:
        problems = [said for name, one in there.items() for said in _unlike(name, here, one)]
    if problems:
        raise HostError("\n".join(problems))


def _unlike(name: str, here: Tls, there: Tls) -> Iterator[str]:
    if here.on and not there.on:
        how = "by /etc/environment, or SetEnv in its sshd_config"
        yield f"{name}: {USE} is not set there, and is here; set it and its files there {how}, or unset it here"
    elif there.on and not here.on:
        yield f"{name}: {USE} is set there, and not here; set it and its files in this shell, or unset it there"
    elif here.on and not set(here.authorities) & set(there.authorities):
        yield f"{name}: {AUTHORITY} there has no certificate of the one here; put the same file on all machines"


def refuse_another(cluster: "Cluster") -> None:
    """Raise ``HostError`` unless this process has TLS as a cluster that is up has it: Ray would try for minutes."""
    here, which = look_at_tls(os.environ, cluster.address), f"the cluster {cluster.name} is up"
    if here.wrong:
        raise HostError("\n".join(f"{HERE}: {said}" for said in here.wrong))
    if cluster.tls and not here.on:
        raise HostError(f"{which} with TLS, and {USE} is not set here; set it and its files as for dbdyno hosts up")
    if here.on and not cluster.tls:
        raise HostError(f"{which} without TLS, and {USE} is set here; unset it, or dbdyno hosts down, then up")


class _UnfitError(Exception):
    """What a file has in it is not what it is to have."""


def _unreadable(variable: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Why the file that a variable names can't be read, and the remedy."""
    given = environment.get(variable, "")
    if not given:
        yield f"{variable} is not set, and {USE} is; set it to the path of its file"
    elif not given.startswith("/"):
        yield f"{variable} is {given!r}; give the path from the root: Ray runs in another folder"
    else:
        try:
            Path(given).open("rb").close()
        except PermissionError:
            yield f"{variable} {given}: Permission denied; let the user that Ray runs as read it"
        except OSError as error:
            yield f"{variable} {given}: {error.strerror}; put the file there, or name another"


def _context(protocol: "ssl._SSLMethod", certificate: str, key: str, authority: str) -> ssl.SSLContext:
    """One end of a connection, as strict as Ray's. Raises ``_UnfitError``."""
    context = ssl.SSLContext(protocol)
    context.verify_mode = ssl.CERT_REQUIRED
    for variable, path in ((CERTIFICATE, certificate), (AUTHORITY, authority)):
        try:
            (context if variable == AUTHORITY else ssl.SSLContext(protocol)).load_verify_locations(path)
        except ssl.SSLError:
            raise _UnfitError(f"{variable} {path}: holds no certificate; give one in PEM") from None
    try:
        context.load_cert_chain(certificate, key, password="")  # else it would be asked for
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            text = f"{KEY} {key}: is not the key of {CERTIFICATE} {certificate}; give the two that were made together"
        else:
            text = f"{KEY} {key}: holds no key that can be read; give one in PEM without a passphrase"
        raise _UnfitError(text) from None
    return context


def _shake_hands(asking: ssl.SSLContext, asked: ssl.SSLContext, address: str) -> None:
    """Connect this machine with itself, in memory, as others would from both ends. Raises ``ssl.SSLError``."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        asking.wrap_bio(back, there, server_hostname=address),
        asked.wrap_bio(there, back, server_side=True),
    ]
    for _ in range(_STEPS_MAX):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()


def _remedied(error: ssl.SSLCertVerificationError, certificate: str, authority: str, address: str) -> str:
    """Why others would not accept this machine's certificate, and the remedy."""
    what = f"{CERTIFICATE} {certificate}"
    if error.verify_code in _OTHER_NAME:
        kind = "IP" if address.replace(".", "").isdigit() else "DNS"
        return f"{what}: is not for {address}; make one with subjectAltName={kind}:{address}"
    if error.verify_code == _PURPOSE:
        return f"{what}: is not for both ends of a connection; make one for serverAuth and clientAuth"
    if error.verify_code in _TIME:
        return f"{what}: {error.verify_message} by this machine's clock; see date, or make a new one"
    return f"{what}: {error.verify_message}; give one that {AUTHORITY} {authority} has signed"
