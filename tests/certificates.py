"""An authority and certificates of machines for tests, made by the commands of docs/hosts.md."""

import shutil
import subprocess

from dbdyno.hosts.tls import AUTHORITY, CERTIFICATE, KEY, USE

OPENSSL = shutil.which("openssl")
_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def openssl(*words):
    subprocess.run([OPENSSL, *map(str, words)], check=True, capture_output=True)


def authority(folder, name="ca"):
    """Make ``NAME.crt`` and its key."""
    files = ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"]
    openssl("req", "-x509", *_KEY, "-days", "3650", "-subj", f"/CN={name}", *files)


def certificate(folder, name, address, by="ca", **given):
    """Make ``NAME.crt`` and its key, signed by an authority; what Ray's environment is with it.

    ``days`` it is good for, and a list of extensions besides its address as ``more``, may be given.
    """
    files = ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr"]
    extensions = [f"subjectAltName=IP:{address}", *given.get("more", ())]
    openssl("req", *_KEY, "-subj", f"/CN={name}", *[word for one in extensions for word in ("-addext", one)], *files)
    signed = ["-CA", folder / f"{by}.crt", "-CAkey", folder / f"{by}.key", "-CAcreateserial"]
    wanted = ["-in", folder / f"{name}.csr", "-copy_extensions", "copy", "-out", folder / f"{name}.crt"]
    openssl("x509", "-req", *signed, "-days", given.get("days", 365), *wanted)
    return environment(folder, f"{name}.crt", f"{name}.key", f"{by}.crt")


def environment(folder, crt, key, ca):
    return {USE: "1", CERTIFICATE: f"{folder / crt}", KEY: f"{folder / key}", AUTHORITY: f"{folder / ca}"}
