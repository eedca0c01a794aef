"""What is sent to a host before dbdyno is there: it takes in packages, makes an environment, and becomes the agent.

Nothing but Python's own library, and in words that an old Python still understands, so that it can say that it is too
old. A package is a wheel, unpacked into a folder named by its SHA-256; an environment is a venv with a list of them.
"""

import contextlib
import fcntl
import hashlib
import io
import json
import os
import platform
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

MAGIC = b"dbdyno-hosts "  # begins each line that is for the other end: what a login shell prints comes before
_WHOLE = "whole"  # in an environment that was made to its end


def main() -> None:
    """Read a request, answer it, go on as the agent where there is one."""
    request = json.loads(sys.stdin.buffer.readline().decode())
    try:
        answer, environment = prepare(request)
    except OSError as error:
        place = error.filename or request["folder"] or "its folder"
        reason = f"{place}: {error.strerror}; name another folder in the hosts file: folder = ..."
        answer, environment = failure(reason), None
    except (ValueError, ImportError, zipfile.BadZipFile) as error:
        answer, environment = failure(str(error)), None
    send(answer)
    if environment is not None:
        python = str(environment / "bin/python")
        path = str(environment / "bin") + ":" + os.environ.get("PATH", os.defpath)
        variables = dict(os.environ, DBDYNO_STATE_DIR=answer["state"], PATH=path)
        os.execve(python, [python, "-m", "dbdyno.hosts.agent"], variables)  # noqa: S606  (no shell is wanted)


def failure(text: str) -> "dict[str, Any]":
    """The answer where nothing comes of it: as ``frames.failure_answer``, which is not here yet."""
    return {"failed": {"kind": "host", "text": text}}


def send(answer: "dict[str, Any]") -> None:
    """Send one object to the other end."""
    sys.stdout.buffer.write(MAGIC + json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()


def prepare(request: "dict[str, Any]") -> "tuple[dict[str, Any], Path | None]":
    """Take in what is lacking; the answer, and the environment, if there is one. Raises ``OSError``, ``ValueError``."""
    folder = own_folder(request["folder"])
    own = folder / "hosts" / request["name"]
    record = own / "environment"
    answer = {"folder": str(folder), "state": str(own / "state"), "installed": True}
    if request["packages"] is None:
        last_environment = Path(record.read_text()) if record.exists() else None
        there = last_environment is not None and (last_environment / _WHOLE).exists()
        answer["installed"] = there
        return answer, last_environment if there else None
    check_python(request["python"], request["machine"])
    (own / "state").mkdir(parents=True, exist_ok=True)
    for passed in (own, own / "state"):
        passed.chmod(0o711)  # a server under test runs as another user, whom they let through
    with open(str(folder / "lock"), "w") as lock:  # noqa: PTH123  (a Path of an old Python would not do)
        fcntl.flock(lock, fcntl.LOCK_EX)
        packages = folder / "packages"
        packages.mkdir(exist_ok=True)
        lacking = [package for package in request["packages"] if not (packages / package["sha256"]).is_dir()]
        send({"lacking": [package["sha256"] for package in lacking]})
        for package in lacking:
            take(package, packages)
        environment = make_environment(folder, request)
    record.write_text(str(environment))
    return answer, environment


def own_folder(path: "str | None") -> Path:
    """The folder for dbdyno's things; what lies there is run, so nobody else may write to it."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state")
    folder = Path(path or ("/var/lib/dbdyno/hosts" if os.geteuid() == 0 else state + "/dbdyno/hosts"))
    if not folder.exists():
        folder.mkdir(parents=True)
        folder.chmod(0o755)
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        whose = " must belong to the ssh user and be writable by no one else; see folder in the hosts file"
        raise ValueError("the folder " + str(folder) + whose)
    return folder


def check_python(wanted: "list[int]", machine: str) -> None:
    """Raise ``ValueError`` where what runs here can't run what is sent."""
    here = list(sys.version_info[:2])
    if here != wanted:
        mismatch = "its Python is {}.{}, and dbdyno hosts up runs on Python {}.{}".format(*(here + wanted))
        raise ValueError(mismatch + ': name the same version in the hosts file: python = "python{}.{}"'.format(*wanted))
    if platform.machine() != machine:
        raise ValueError("it is a " + platform.machine() + ", and the packages are for " + machine)


def take(package: "dict[str, Any]", packages: Path) -> None:
    """Read one wheel from the other end, hold it to its SHA-256, unpack it, and let it count by its name."""
    content = sys.stdin.buffer.read(package["size_bytes"])
    if hashlib.sha256(content).hexdigest() != package["sha256"]:
        raise ValueError(package["name"] + " arrived damaged: its SHA-256 differs")
    arriving = packages / "{}.{}.part".format(package["sha256"], os.getpid())
    shutil.rmtree(str(arriving), ignore_errors=True)
    with zipfile.ZipFile(io.BytesIO(content)) as wheel:
        wheel.extractall(str(arriving))  # which never leaves the folder
        for member in wheel.infolist():
            mode = member.external_attr >> 16 & 0o755
            if mode & 0o111:
                os.chmod(str(arriving / member.filename), mode)  # noqa: PTH101  (as above)
    arriving.rename(packages / package["sha256"])


def make_environment(folder: Path, request: "dict[str, Any]") -> Path:
    """A venv that sees the packages; made once for each list of them."""
    import venv

    environment = folder / "env-{}".format(request["environment"])
    if (environment / _WHOLE).exists():
        return environment
    shutil.rmtree(str(environment), ignore_errors=True)
    venv.EnvBuilder(symlinks=True, with_pip=False).create(str(environment))
    places = [folder / "packages" / package["sha256"] for package in request["packages"]]
    version = "python{}.{}".format(*sys.version_info[:2])
    site = environment / "lib" / version / "site-packages"
    (site / "dbdyno-hosts.pth").write_text("".join(str(place) + "\n" for place in places))
    for program in [path for place in places for path in place.glob("*.data/scripts/*")]:
        with contextlib.suppress(FileExistsError):
            (environment / "bin" / program.name).symlink_to(program)
    start = environment / "bin/dbdyno"
    start.write_text(f"#!{environment}/bin/python\nfrom dbdyno.cli.main import main\n\nmain()\n")
    start.chmod(0o755)
    (environment / _WHOLE).write_text("")
    return environment


if __name__ == "__main__":
    main()
