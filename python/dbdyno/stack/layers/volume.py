"""A logical volume of LVM over what is below: linear, striped over several disks, or thin, out of a pool.

Cannot: take snapshots; mirror (use an array); cache (use a cache); be thin over several pools; grow; use a real disk.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dbdyno.errors import TrialError
from dbdyno.stack.between import Between, load_module
from dbdyno.stack.layer import Layer, StackContext
from dbdyno.stack.tools import run_tool
from dbdyno.stack.undo.actions import RemoveMappings
from dbdyno.study.schema import TrialSpec, VolumeSection

VOLUME, POOL = "data", "pool"
POOL_SHARE = 90  # percent of the disks that the pool of a thin volume takes; the rest is for its metadata
SECTOR_BYTES = 512  # of device mapper's tables
# Nothing is written to the host's own folders, no daemon is asked, and a pool is not checked by a program.
_CONFIG = 'backup{backup=0 archive=0} activation{monitoring=0} global{use_lvmpolld=0 thin_check_executable=""}'


@dataclass(frozen=True)
class Volume:
    """One volume over all that is below."""

    kind: str  # linear, striped, thin
    section: VolumeSection
    fresh: bool  # make it anew, rather than activate what the disks hold
    name: str = "volume"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The volume, active for as long as the context lasts."""
        for module in ("dm-mod", *(["dm-thin-pool"] if self.kind == "thin" else [])):
            load_module(module)
        sources, group = below.sources, f"dbdyno_{below.scratch.name}"
        with below.journal.undoing(RemoveMappings(f"{group}-")):
            if self.fresh:
                self._create(sources, group)
            else:
                _lvm(sources, "vgrename", _group_on(sources), group)
                _lvm(sources, "vgchange", "--activate", "y", group)
            observed = observed_tables(run_tool(["dmsetup", "table"]), group)
            self._check(observed)
            yield below.raised(self.name, observed, volume=Path("/dev/mapper") / f"{group}-{VOLUME}")

    def _create(self, sources: list[str], group: str) -> None:
        for source in sources:
            run_tool(["wipefs", "--all", "--quiet", source])
        _lvm(sources, "vgcreate", group, *sources)
        made = ("lvcreate", "--yes", "--name", VOLUME)
        if self.kind == "thin":
            chunk = f"{self.section.pool_chunk // 1024}k"
            pool = ("--type", "thin-pool", "--chunksize", chunk, "--extents", f"{POOL_SHARE}%VG", "--zero", "n")
            _lvm(sources, "lvcreate", "--yes", "--name", POOL, *pool, group)
            size = _lvm(
                sources, "lvs", "--noheadings", "--nosuffix", "--units", "b", "-o", "lv_size", f"{group}/{POOL}"
            )
            _lvm(sources, *made, "--type", "thin", "--virtualsize", f"{size.strip()}b", "--thinpool", POOL, group)
            return
        stripes = ("--stripes", str(len(sources)), "--stripesize", f"{self.section.stripe // 1024}k")
        _lvm(sources, *made, "--extents", "100%FREE", *(stripes if self.kind == "striped" else ()), group)

    def _check(self, observed: dict[str, Any]) -> None:
        """Raises ``TrialError`` with every setting that did not take."""
        asked: dict[str, Any] = {"kind": self.kind}
        if self.kind == "striped":
            asked["stripe_bytes"] = self.section.stripe
        if self.kind == "thin":
            asked["pool_chunk_bytes"] = self.section.pool_chunk
        wrong = [f"{name} {value}, it is {observed.get(name)}" for name, value in asked.items()
                 if observed.get(name) != value]  # fmt: skip
        if wrong:
            raise TrialError(f"volume: asked for {'; '.join(wrong)}")


def _lvm(sources: list[str], command: str, *argv: str) -> str:
    """Run a command of LVM that sees these devices alone, whatever others the host has."""
    return run_tool([command, "--devices", ",".join(sources), "--config", _CONFIG, *argv])


def _group_on(sources: list[str]) -> str:
    """The one group of volumes that the devices hold."""
    names = _lvm(sources, "vgs", "--noheadings", "-o", "vg_name").split()
    if len(names) != 1:
        raise TrialError(
            f"expected one group of volumes on {', '.join(sources)}; vgs lists {', '.join(names) or 'none'}"
        )
    return names[0]


def observed_tables(tables: str, group: str) -> dict[str, Any]:
    """What the lines of ``dmsetup table`` say of the volume of a group: its kind, devices and sizes in bytes.

    Formats: Documentation/admin-guide/device-mapper/{linear,striped,thin-provisioning}.rst.
    """
    lines = [line.partition(": ")[::2] for line in tables.splitlines() if line.startswith(f"{group}-")]
    volume = [fields.split() for name, fields in lines if name == f"{group}-{VOLUME}"]
    if not volume:
        return {}
    observed: dict[str, Any] = {"kind": volume[0][2], "segments": len(volume)}
    observed["size_bytes"] = SECTOR_BYTES * sum(int(fields[1]) for fields in volume)
    if observed["kind"] == "striped":
        observed |= {"stripes": int(volume[0][3]), "stripe_bytes": SECTOR_BYTES * int(volume[0][4])}
    for _, fields in lines:
        if " thin-pool " in fields:
            observed["pool_chunk_bytes"] = SECTOR_BYTES * int(fields.split()[5])
    return observed


class _Lvm(Between):
    FIELD: ClassVar[str] = "volume"
    PROGRAMS: ClassVar[dict[str, str]] = {"lvcreate": "lvm2", "dmsetup": "dmsetup"}
    TOUCHES: ClassVar[str] = "activated: a logical volume on the disks of each trial; its mapping removed afterwards"

    def modules(self, spec: TrialSpec) -> list[str]:
        return ["dm-mod", *(["dm-thin-pool"] if spec.stack.volume == "thin" else [])]

    def on_disk(self, spec: TrialSpec) -> list[object]:
        return [spec.stack.volume, spec.volume.stripe, spec.volume.pool_chunk]

    def layer(self, spec: TrialSpec, *, fresh: bool, key: bytes) -> Layer:
        return Volume(spec.stack.volume, spec.volume, fresh)


BETWEEN = _Lvm()
