"""A release in one folder: wheels for two machines, a Debian package for this one, bills of materials, checksums.

All of it is built from the last commit, unpacked into a folder of its own, so nothing that lies about gets in.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ("dbdyno-load", "dbdyno-disk", "dbdyno-probe")
BILLS = {"cargo-cyclonedx": "cargo install cargo-cyclonedx", "cyclonedx-py": "pip install cyclonedx-bom"}
CHECKSUMS = "SHA256SUMS"  # as sha256sum --check reads it
DATED = re.compile(r"^## \[([^\]]+)\] - (\d{4}-\d{2}-\d{2})$", re.MULTILINE)
INSTALLED = Path("usr/lib/dbdyno")  # where the Debian package has its Python environment


class ReleaseError(Exception):
    """What keeps a release from being made, with the remedy."""


@dataclass(frozen=True)
class Machine:
    """A machine that wheels are built for."""

    name: str  # as Rust, Python and wheels call it
    debian: str  # as Debian calls it
    prefix: str = ""  # of the cross compiler's programs; empty: this machine's own

    @property
    def target(self) -> str:
        """As Rust calls it in full."""
        return f"{self.name}-unknown-linux-gnu"

    @property
    def environment(self) -> dict[str, str]:
        """What tells cargo, cc and PyO3 to build for it."""
        if not self.prefix:
            return {}
        variable = self.target.replace("-", "_")
        return {
            f"CARGO_TARGET_{variable.upper()}_LINKER": f"{self.prefix}gcc",
            f"CC_{variable}": f"{self.prefix}gcc",
            "PYO3_CROSS_PYTHON_VERSION": "3.11",
        }

    def missing_tools(self) -> list[str]:
        """What must be installed before anything can be built for it."""
        listed = subprocess.run(
            ["rustup", "target", "list", "--installed"], capture_output=True, text=True, check=False
        )
        missing = [] if self.target in listed.stdout.split() else [f"rustup target add {self.target}"]
        if self.prefix and shutil.which(f"{self.prefix}gcc") is None:
            missing.append(f"apt-get install gcc-{self.prefix.removesuffix('-')}")
        return missing


MACHINES = (Machine("x86_64", "amd64"), Machine("aarch64", "arm64", "aarch64-linux-gnu-"))


def versions() -> dict[str, str]:
    """The version as each file has it."""
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    module = re.findall(r'^__version__ = "(.+)"$', (ROOT / "python/dbdyno/__init__.py").read_text(), re.MULTILINE)
    return {"pyproject.toml": package, "Cargo.toml": workspace, "python/dbdyno/__init__.py": module[0]}


def released() -> dict[str, str]:
    """Versions with the day on which each was released, the newest first, as CHANGELOG.md has them."""
    return dict(DATED.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")))


def make_release(into: Path, machines: Sequence[Machine], say: Callable[[str], None]) -> list[Path]:
    """Build everything into a new or empty folder; its files. Raises ``ReleaseError``."""
    if missing := [remedy for machine in machines for remedy in machine.missing_tools()]:
        raise ReleaseError(f"first: {'; '.join(missing)}")
    if len(set(versions().values())) > 1:
        raise ReleaseError(f"the version differs: {json.dumps(versions())}")
    if into.exists() and any(into.iterdir()):
        raise ReleaseError(f"{into} is not empty; name another folder")
    if missing := [remedy for tool, remedy in BILLS.items() if shutil.which(tool) is None]:
        raise ReleaseError(f"first: {'; '.join(missing)}")
    into.mkdir(parents=True, exist_ok=True)
    source = ROOT / "target/release-source"
    _unpack_commit(source)
    for machine in machines:
        say(f"{machine.name}: programs, extension module, wheel")
        build_wheel(source, machine, into)
    if own := [machine for machine in machines if not machine.prefix]:
        say(f"{own[0].debian}: Debian package")
        [wheel] = into.glob(f"*_{own[0].name}.whl")
        build_debian_package(wheel, source, own[0], into)
    say("bills of materials")
    write_bills(source, into)
    _write_checksums(into)
    shutil.rmtree(source)
    return sorted(into.iterdir())


def _unpack_commit(into: Path) -> None:
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    with subprocess.Popen(["git", "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE) as packed:
        assert packed.stdout is not None  # noqa: S101  (it is a pipe)
        with tarfile.open(fileobj=packed.stdout, mode="r|") as archive:
            archive.extractall(into, filter="data")
    if packed.returncode:
        raise ReleaseError("git archive failed; a release is built from a commit of a git repository")


def build_wheel(source: Path, machine: Machine, into: Path) -> None:
    """Build the wheel for a machine. Raises ``ReleaseError``."""
    own_tools = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": f"{source}/python"}
    build = {"CARGO_TARGET_DIR": str(ROOT / "target/release-cargo"), **machine.environment, **own_tools}
    packages = [word for name in PROGRAMS for word in ("-p", name)]
    _run(["cargo", "build", "--release", "--locked", *packages, "--target", machine.target], source, build)
    made = ROOT / "target/release-cargo" / machine.target / "release"
    programs = source / "target/programs/scripts"
    programs.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        _run([f"{machine.prefix}strip", "--strip-debug", "-o", str(programs / name), str(made / name)], source, {})
    # The manual lists every command, which this machine's own module must be able to import.
    native = ROOT / "python/dbdyno/_native.abi3.so"
    shutil.copy(native, source / "python/dbdyno" / native.name)
    _run([sys.executable, "-m", "scripts.manual", "target/programs/data"], source, own_tools)
    (source / "python/dbdyno" / native.name).unlink()
    _run(["maturin", "build", "--locked", "--target", machine.target, "--out", str(into.resolve())], source, build)


def build_debian_package(wheel: Path, source: Path, machine: Machine, into: Path) -> Path:
    """Pack the wheel with all that it depends on, for the Python of this Debian; the package's path.

    Debian's own numpy and pydantic are older than what dbdyno needs, so it brings its own, each checked against the
    recorded hash, in an environment below ``/usr/lib/dbdyno``. Raises ``ReleaseError``.
    """
    python = Path("/usr/bin/python3")
    version = wheel.name.split("-")[1]
    stage = source / "target/debian"
    environment = stage / INSTALLED
    shutil.rmtree(stage, ignore_errors=True)
    _run([str(python), "-m", "venv", "--without-pip", str(environment)], source, {})
    pip = [sys.executable, "-m", "pip", "--python", str(environment / "bin/python"), "install", "--quiet"]
    pip += ["--disable-pip-version-check", "--no-compile"]
    locked = (source / "requirements.txt").read_text(encoding="utf-8")
    to_run = source / "target/requirements-to-run.txt"
    to_run.write_text(re.sub(r"^maturin==(?:.*\\\n)+.*\n", "", locked, flags=re.MULTILINE), encoding="utf-8")
    _run([*pip, "--require-hashes", "-r", str(to_run)], source, {})
    _run([*pip, "--no-deps", str(wheel.resolve())], source, {})
    for script in (environment / "bin").iterdir():
        _move_shebang(script, environment)
    for unneeded in ("activate", "activate.csh", "activate.fish", "Activate.ps1"):
        (environment / "bin" / unneeded).unlink(missing_ok=True)
    _place_beside(stage, environment)
    control = stage / "DEBIAN/control"
    control.parent.mkdir()
    fields = _control(version, machine, _python_minor(python), source, environment)
    control.write_text("".join(f"{name}: {text}\n" for name, text in fields.items()), encoding="utf-8")
    package = into / f"dbdyno_{version}_{machine.debian}.deb"
    _run(["dpkg-deb", "--root-owner-group", "-Zzstd", "--build", str(stage), str(package.resolve())], source, {})
    return package


def _move_shebang(script: Path, environment: Path) -> None:
    """Have a script of an environment start the Python that it will have once installed."""
    if script.is_symlink() or script.stat().st_size > 1 << 16:
        return
    content = script.read_bytes()
    script.write_bytes(content.replace(os.fsencode(environment.resolve()), os.fsencode(Path("/") / INSTALLED)))


def _place_beside(stage: Path, environment: Path) -> None:
    """Put the command on PATH, its manual and its completion where Debian looks for them."""
    (stage / "usr/bin").mkdir()
    (stage / "usr/bin/dbdyno").symlink_to(Path("../..") / INSTALLED / "bin/dbdyno")
    share = environment / "share"
    for part in ("man", "bash-completion", "fish", "zsh"):
        if (share / part).exists():
            shutil.copytree(share / part, stage / "usr/share" / part)
    licence = stage / "usr/share/doc/dbdyno/copyright"
    licence.parent.mkdir(parents=True)
    shutil.copy(ROOT / "LICENSE", licence)


def _python_minor(python: Path) -> tuple[int, int]:
    said = subprocess.run(
        [str(python), "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, check=True
    )
    major, minor = map(int, said.stdout.split())
    return major, minor


def _control(
    version: str, machine: Machine, minor: tuple[int, int], source: Path, environment: Path
) -> Mapping[str, str]:
    """Fields of a Debian package (deb-control(5)). What it recommends is what ``make build`` installs to run."""
    script = (source / "scripts/system-packages").read_text(encoding="utf-8")
    listed = re.search(r"^run_packages=\(([^)]*)\)", script, re.MULTILINE)
    assert listed is not None  # noqa: S101  (the script begins with it)
    to_build = {"gcc", "libc6-dev", "make", "python3-venv"}
    recommended = [name for name in listed[1].split() if name not in to_build]
    kib = sum(path.lstat().st_size for path in environment.rglob("*")) // 1024
    return {
        "Package": "dbdyno",
        "Version": version,
        "Architecture": machine.debian,
        "Section": "database",
        "Priority": "optional",
        "Maintainer": "the dbdyno developers",
        "Installed-Size": str(kib),
        "Depends": f"python3 (>= {minor[0]}.{minor[1]}), python3 (<< {minor[0]}.{minor[1] + 1}), libc6 (>= 2.34)",
        "Recommends": ", ".join(recommended),
        "Description": "dynamometer for database servers and the storage they stand on",
    }


def write_bills(source: Path, into: Path) -> None:
    """Write what each program and the Python package consist of, as CycloneDX. Raises ``ReleaseError``.

    The extension module's is in the wheels already: maturin puts it there.
    """
    for name in PROGRAMS:
        crate = source / "crates" / name
        _run(["cargo", "cyclonedx", "--format", "json", "--manifest-path", str(crate / "Cargo.toml")], source, {})
        shutil.move(crate / f"{name}.cdx.json", into / f"{name}.cdx.json")
    python = ["cyclonedx-py", "requirements", str(source / "requirements.txt")]
    _run([*python, "--output-format", "JSON", "--output-file", str(into.resolve() / "python.cdx.json")], source, {})


def _write_checksums(into: Path) -> None:
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(into.iterdir())]
    (into / CHECKSUMS).write_text("".join(lines), encoding="ascii")


def _run(command: Sequence[str], folder: Path, more: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **more}, check=False)
    except FileNotFoundError:
        raise ReleaseError(f"{command[0]} is not installed; CONTRIBUTING.md names what a release needs") from None
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)} failed (exit code {done.returncode})")
