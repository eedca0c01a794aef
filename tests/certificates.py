"""An authority and certificates of machines for tests."""

import shutil
import subprocess

OPENSSL = shutil.which("openssl")
_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def openssl(*words):
    subprocess.run([OPENSSL, *map(str, words)], check=True, capture_output=True)


def authority(folder, name="ca"):
    """Make ``NAME.crt`` and its key."""
    files = ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt"]
    openssl("req", "-x509", *_KEY, "-days", "3650", "-subj", f"/CN={name}", *files)


def certificate(folder, name, address, by="ca"):
    """Make ``NAME.crt`` and its key, signed by an authority."""
    files = ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr"]
    openssl("req", *_KEY, "-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:{address}", *files)
    signed = ["-CA", folder / f"{by}.crt", "-CAkey", folder / f"{by}.key", "-CAcreateserial"]
    wanted = ["-in", folder / f"{name}.csr", "-copy_extensions", "copy", "-out", folder / f"{name}.crt"]
    openssl("x509", "-req", *signed, "-days", 365, *wanted)
