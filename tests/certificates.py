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

    ``days`` it is good for, and extensions besides its address as ``more``, may be given.
    """
    files = ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr"]
    openssl("req", *_KEY, "-subj", f"/CN={name}", *files)
    (folder / f"{name}.ext").write_text(f"subjectAltName=IP:{address}\n{given.get('more', '')}\n")
    signed = [
        "-CA",
        folder / f"{by}.crt",
        "-CAkey",
        folder / f"{by}.key",
        "-CAcreateserial",
        "-days",
        given.get("days", 365),
    ]
    wanted = ["-in", folder / f"{name}.csr", "-extfile", folder / f"{name}.ext", "-out", folder / f"{name}.crt"]
    openssl("x509", "-req", *signed, *wanted)
    return environment(folder, f"{name}.crt", f"{name}.key", f"{by}.crt")


def environment(folder, crt, key, ca):
    return {USE: "1", CERTIFICATE: f"{folder / crt}", KEY: f"{folder / key}", AUTHORITY: f"{folder / ca}"}
