"""Network namespaces that stand for machines: a switch between them, and an sshd in each."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import psutil

from dbdyno.hosts import installer
from dbdyno.hosts.bundle import bundle
from tests.support import wait_for

# An inner shell reads no .bashrc: what this account has there may take longer than the session.
SESSION = {"SHLVL": "1", "PATH": f"{sys.base_prefix}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
PACKAGES = "DBDYNO_TEST_PACKAGES"  # a folder that labs share; set for as long as tests run
RUN_THERE = ("dbdyno.hosts.agent", "dbdyno.run.fleet.member", "dbdyno.simulation.sweep")


def lab_lacking():
    """Why there can be no such lab here; empty where there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    lacking = [name for name in ("ip", "nsenter", "ssh", "ssh-keygen", "unshare") if shutil.which(name) is None]
    lacking += [] if SSHD else ["sshd"]
    if lacking:
        return f"no {', '.join(lacking)}: scripts/system-packages test"
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "the kernel makes no network namespaces here"


def run(*argv, **options):
    return subprocess.run(list(map(str, argv)), check=True, capture_output=True, text=True, **options)


class Lab:
    """This machine has address 1 of a network of its own, the others 2, 3, ..."""

    def __init__(self, folder, names, stack):
        self.folder, self.names = folder, names
        self.tag = f"dd{os.getpid() % 100_000}"
        self.network = f"10.{100 + os.getpid() % 100}.{os.getpid() // 100 % 250}"
        self.here = f"{self.network}.1"
        self.daemons = {}
        self._switch(stack)
        self._keys()
        for place, name in enumerate(names):
            self._machine(name, place, stack)

    def address(self, name):
        return f"{self.network}.{self.names.index(name) + 2}"

    def namespace(self, name):
        return f"{self.tag}-{name}"

    def _switch(self, stack):
        run("ip", "link", "add", self.tag, "type", "bridge")
        stack.callback(subprocess.run, ["ip", "link", "del", self.tag], check=False)
        run("ip", "address", "add", f"{self.here}/24", "dev", self.tag)
        run("ip", "link", "set", self.tag, "up")

    def _keys(self):
        for name in ("host", "user"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name)
        (self.folder / "authorized").write_text((self.folder / "user.pub").read_text())
        key = " ".join((self.folder / "host.pub").read_text().split()[:2])
        known = [f"{self.address(name)} {key}\n" for name in self.names]
        (self.folder / "known").write_text("".join(known))
        aliases = "".join(f"Host {name}\n  HostName {self.address(name)}\n" for name in self.names)
        (self.folder / "config").write_text(
            f"{aliases}Host *\n  User root\n  IdentityFile {self.folder}/user\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.folder}/known\n  StrictHostKeyChecking yes\n"
        )
        (self.folder / "sshd").write_text(
            f"HostKey {self.folder}/host\nAuthorizedKeysFile {self.folder}/authorized\nStrictModes no\n"
            "PermitRootLogin prohibit-password\nPasswordAuthentication no\nUsePAM no\nPidFile none\n"
        )

    def _machine(self, name, place, stack):
        namespace, near, far = self.namespace(name), f"{self.tag}{place}", f"{self.tag}{place}p"
        run("ip", "netns", "add", namespace)
        stack.callback(subprocess.run, ["ip", "netns", "del", namespace], check=False)
        run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", namespace)
        run("ip", "link", "set", near, "master", self.tag, "up")
        run("ip", "-n", namespace, "address", "add", f"{self.address(name)}/24", "dev", far)
        for device in ("lo", far):
            run("ip", "-n", namespace, "link", "set", device, "up")
        stack.callback(self.silence, name)
        self.listen(name)

    def words(self, name, *prefix, environment=None):
        """The command that is its sshd, with words before it, and variables that its sessions have."""
        given = " ".join(f"{variable}={value}" for variable, value in {**SESSION, **(environment or {})}.items())
        command = [*prefix, SSHD, "-D", "-e", "-f", self.folder / "sshd", "-o", f"SetEnv {given}"]
        # `ip netns exec` would copy the mounts: loop devices of others would stay in use.
        return ["nsenter", f"--net=/run/netns/{self.namespace(name)}", *map(str, command)]

    def listen(self, name, *prefix, environment=None):
        """Start its sshd. The folder it needs is in memory, as in a booted system."""
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        words = self.words(name, *prefix, environment=environment)
        log = (self.folder / f"sshd-{name}.log").open("ab")
        self.daemons[name] = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        log.close()
        wait_for(lambda: self._answers(name), every=0.05)

    def _answers(self, name):
        tried = subprocess.run(self.ssh(name, "true"), capture_output=True, check=False)
        return tried.returncode == 0

    def ssh(self, name, *argv):
        return ["ssh", "-F", str(self.folder / "config"), "-o", "BatchMode=yes", name, *argv]

    def silence(self, name):
        """End its sshd, and the connections that it serves."""
        daemon = self.daemons.pop(name, None)
        if daemon is None:
            return
        with suppress(psutil.NoSuchProcess):
            for one in psutil.Process(daemon.pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):
                    if one.name().startswith("sshd"):  # what it has started learns by itself that it is gone
                        one.kill()
        daemon.kill()
        daemon.wait()

    def plug(self, name, state):
        """Cut a machine off the network (``down``), or let it back (``up``)."""
        run("ip", "link", "set", f"{self.tag}{self.names.index(name)}", state)

    def inventory(self, **fields):
        """The file that names its machines; all keep what they have in one folder, as with a shared home."""
        path = self.folder / "hosts.toml"
        lines = ['version = 1\n[cluster]\nssh_config = "config"\n']
        for name in self.names:
            lines.append(f'[host.{name}]\nssh = "{name}"\nroles = ["client"]\nfolder = "{self.folder}/there"\n')
            lines += [f"{field} = {value}\n" for field, value in fields.items()]
        path.write_text("".join(lines))
        return path


@contextmanager
def lab(*names, bare=False):
    """A lab in a folder of its own, gone afterwards; a ``bare`` one has none of the packages that its hosts need."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ddlab", dir="/var/tmp")))
        if (shared := os.environ.get(PACKAGES)) and not bare:
            give_packages(folder, Path(shared))
        yield Lab(folder, names, stack)


def give_packages(folder, shared):
    """Have packages on the hosts: made once for all labs.

    The packages are the same folder in all of them, so that what Python compiles there is compiled once, too.
    """
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "packages").exists():
            unpack(shared)
    packages = folder / "there/packages"
    packages.parent.mkdir(parents=True)
    packages.symlink_to(shared / "packages")


def unpack(shared):
    shared.chmod(0o755)  # programs that run as another user pass through it
    arriving = shared / "arriving"
    arriving.mkdir()
    places = []
    with bundle(shared / "wheels") as wheels:
        for package in wheels.packages:
            with package.path.open("rb") as file, mock.patch.object(sys, "stdin", SimpleNamespace(buffer=file)):
                installer.take(package.description, arriving)
            places.append(str(arriving / package.sha256))
    environment = {**os.environ, "PYTHONPATH": ":".join(places)}
    # Labs are begun side by side: without this each of them would compile all that their hosts begin with.
    run(sys.executable, "-P", "-c", f"import {', '.join(RUN_THERE)}", env=environment)
    arriving.rename(shared / "packages")
