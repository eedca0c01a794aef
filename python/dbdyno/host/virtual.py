"""Whether the host is a guest, and in what: the hypervisor flag, the firmware's tables, a container's marks."""

from pathlib import Path
from typing import Any

from dbdyno.host.read import UNKNOWN, text_of

DMI = Path("/sys/class/dmi/id")
# What firmware says of itself (systemd-detect-virt's table, the commoner part).
VENDORS = {
    "KVM": "kvm",
    "OpenStack": "kvm",
    "Amazon EC2": "amazon",
    "QEMU": "qemu",
    "VMware": "vmware",
    "VMW": "vmware",
    "innotek GmbH": "virtualbox",
    "VirtualBox": "virtualbox",
    "Xen": "xen",
    "Bochs": "bochs",
    "Parallels": "parallels",
    "BHYVE": "bhyve",
    "Microsoft Corporation Virtual Machine": "hyper-v",
    "Google Compute Engine": "google",
    "DigitalOcean": "kvm",
    "Hetzner": "kvm",
}
DMI_FILES = ("sys_vendor", "product_name", "board_vendor", "bios_vendor", "bios_version")


def virtualisation_facts(
    *, cpu_flags: list[str] | str, dmi: Path = DMI, root: Path = Path("/"), environ: Path = Path("/proc/1/environ")
) -> dict[str, Any]:
    """What this host runs in, and what says so; nothing that names the one machine."""
    tables = {name: text_of(dmi / name) for name in DMI_FILES}
    return {
        "hypervisor_flag": UNKNOWN if cpu_flags == UNKNOWN else ("yes" if "hypervisor" in cpu_flags else "no"),
        "hypervisor": _hypervisor(tables, root),
        "firmware": tables,
        "container": _container(root, environ),
    }


def _hypervisor(tables: dict[str, str], root: Path) -> str:
    kind = text_of(root / "sys/hypervisor/type")
    if kind != UNKNOWN:
        return kind
    said = " / ".join([f"{tables['sys_vendor']} {tables['product_name']}", *tables.values()])
    return next((name for mark, name in VENDORS.items() if mark in said), UNKNOWN)


def _container(root: Path, environ: Path) -> str:
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    try:
        words = environ.read_bytes().split(b"\0")
    except OSError:
        return UNKNOWN
    return next((word.partition(b"=")[2].decode(errors="replace") for word in words if word.startswith(b"container=")),
                "none seen")  # fmt: skip
