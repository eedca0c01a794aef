"""A machine of the user's own, booted from its disk image for each trial; its server is treated as an external one.

Whatever system it runs: dbdyno logs in by ssh and talks to the server, and knows nothing of what is between.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from dbdyno.errors import DbdynoError, UserError
from dbdyno.host.read import UNKNOWN
from dbdyno.model.design import BOOTED_KERNELS
from dbdyno.mysql.server_url import server_url
from dbdyno.plan.identity import image_key
from dbdyno.servers.products import external_server
from dbdyno.stack import capabilities
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.guest.image import OVERLAY_BYTES_MAX, ImageMachine, free_ports, image_format
from dbdyno.stack.guest.kernels import find_kernel, known_kernels
from dbdyno.stack.guest.machine import PACKAGE, QEMU, accelerator, kvm_is_open
from dbdyno.stack.kinds.emulated import touched_by_disks
from dbdyno.stack.kinds.external import database_need, needs_of_session
from dbdyno.stack.kinds.kind import Raising, Stack, StackKind
from dbdyno.stack.layers.data import Disks
from dbdyno.stack.layers.device import DiskInGuest
from dbdyno.stack.layers.emulated_disk import is_rotational, running_disk
from dbdyno.stack.layers.external_server import ExternalServerLayer
from dbdyno.stack.layers.machine import BootedImage
from dbdyno.stack.undo_log import Journal
from dbdyno.study.schema import TrialSpec
from dbdyno.study.units import format_bytes
from dbdyno.system.state import new_token

_FILE = "file of the user's own"


class ImageStack(StackKind[Disks]):
    """The prepared data are the blocks of the machine's second drive, written by its own system."""

    HAS_DISK = False  # whose requests the kernel of this host could trace

    def needs_of_server(self, spec: TrialSpec) -> Iterator[Capability]:
        """Nothing before it is booted: a trial asks the server, and fails where that lacks something."""
        return iter(())

    def needs_of_ground(self, spec: TrialSpec, erase: frozenset[str]) -> Iterator[Capability]:
        """QEMU, ssh, the image and the key, and what serves a file as a disk; no root and no loop device."""
        stack = spec.stack
        yield capabilities.tool((QEMU,), PACKAGE)
        yield capabilities.tool(("ssh",), "openssh-client")
        yield _image(Path(str(stack.image)))
        key = Path(str(stack.key))
        readable = key.is_file() and os.access(key, os.R_OK)
        detail = str(key) if readable else f"{key} can't be read"
        remedy = "name the private key whose public half is in the image"
        yield Capability("ssh key", ok=readable, detail=detail, remedy=remedy, field=("stack", "key"))
        if kvm_is_open() and not _kernel_to_try():
            remedy = f"dbdyno kernels add {BOOTED_KERNELS[1]}"
            yield Capability("KVM", ok=False, detail="whether it works is tried with a known kernel", remedy=remedy)
        yield capabilities.fuse()
        if spec.workload.data_bytes:
            yield capabilities.room_for_content(spec.workload.data_bytes)
        yield capabilities.room_in_memory(stack.guest_memory, "guest_memory")

    def touches(self, specs: Sequence[TrialSpec], proofs: Mapping[str, str]) -> Iterator[str]:
        """The disks, and the machines."""
        disks = {self.planned_key(spec): spec.stack.size or 0 for spec in specs}
        yield from touched_by_disks(list(disks.values()))
        images = ", ".join(dict.fromkeys(str(spec.stack.image) for spec in specs))
        memory = format_bytes(max(spec.stack.guest_memory for spec in specs))
        cuts = ", each power cut" if any(spec.crash for spec in specs) else ""
        yield (
            f"booted: a virtual machine for each trial{cuts} and each image of data that is prepared ({images}, which "
            f"is not written; {memory} of memory, at most {format_bytes(OVERLAY_BYTES_MAX)} in the state folder); it "
            "reaches no network, and its sshd and its server can be reached from this host alone"
        )

    def server_version(self, spec: TrialSpec) -> str:
        """It is read back in each trial."""
        return UNKNOWN

    def image_key(self, spec: TrialSpec) -> str:
        """By the image's file, what is run in the machine, and the data."""
        stack = spec.stack
        try:
            facts = Path(str(stack.image)).stat()
            file = [facts.st_size, facts.st_mtime_ns]
        except OSError:  # which the plan says elsewhere
            file = []
        machine = [_FILE, stack.image, *file, stack.bus, stack.login, stack.setup, stack.start, stack.server]
        return image_key(spec, " ".join(map(str, machine)), {})

    @contextmanager
    def new_image(self, spec: TrialSpec, journal: Journal) -> Iterator[Disks]:
        """An empty second drive."""
        assert spec.stack.size is not None  # noqa: S101  (a rule of the study format)
        with running_disk(journal, model=spec.stack.device, size=spec.stack.size) as disk:
            yield Disks((disk,))

    def image_place(self, spec: TrialSpec) -> str:
        """The machine that made them."""
        return f"a drive of {Path(str(spec.stack.image)).name}"

    def stack(self, spec: TrialSpec, image: Disks, raising: Raising) -> Stack:
        """The machine with its drive, and its server."""
        stack = spec.stack
        inside, ports = server_url(stack.server).port, free_ports(2)
        url = forwarded(stack.server, ports[1])
        drive = DiskInGuest(
            image.disks[0],
            stack.device,
            rotational=is_rotational(stack.device),
            seed=raising.seed,
            restore=not raising.install,
        )
        fields = ("setup", "start") if raising.install else ("start",)

        def server_lacks() -> list[Capability]:
            with external_server(url, spec.server.option_file).session() as session:
                needs = list(needs_of_session(session, spec))
                if raising.install:
                    database = server_url(url).database
                    needs.append(database_need(session, database))
                    if needs[-1].ok:
                        session.database(database).mark(new_token())  # as dbdyno's, which the load asks for
                return needs

        machine = ImageMachine(
            Path(str(stack.image)), stack.login, Path(str(stack.key)), stack.guest_memory, inside, (ports[0], ports[1])
        )
        lowest = BootedImage(
            drive,
            stack.bus,
            machine,
            {field: command for field in fields if (command := getattr(stack, field))},
            server_lacks,
            _accelerator(),
            shuts_down=raising.install,
        )
        settings = {} if raising.install else spec.server.settings
        server = ExternalServerLayer(url, spec.server.option_file, settings, stack.engine, in_machine=True)
        return Stack(lowest, (server,))


KIND = ImageStack()


def forwarded(url: str, port: int) -> str:
    """The address at which a server that a study names as within its machine is reached from this host."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    return urlunsplit(parts._replace(netloc=f"{login}@127.0.0.1:{port}"))


def _image(path: Path) -> Capability:
    field = ("stack", "image")
    try:
        found = image_format(path)
    except UserError as error:
        detail, _, remedy = str(error).partition("; ")
        return Capability("image", ok=False, detail=detail, remedy=remedy, field=field)
    return Capability("image", ok=True, detail=f"{path}, {found}")


def _kernel_to_try() -> str:
    """A kernel that is on this host, by which KVM can be tried."""
    return next((kernel["name"] for kernel in known_kernels() if kernel["installed"]), "")


def _accelerator() -> str:
    """``"kvm"`` where a known kernel boots under it; the image may then as well."""
    name = _kernel_to_try() if kvm_is_open() else ""
    try:
        return accelerator(find_kernel(name)) if name else "tcg"
    except DbdynoError:
        return "tcg"
