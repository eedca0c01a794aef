"""LUKS by dm-crypt between the disk and the filesystem: cipher, key and sector size, read back from the kernel.

The key is random, made for one set of prepared data, or for one trial where each makes its filesystem anew. It is in
memory alone: programs get it through a pipe. It protects nothing that is worth it: whoever runs the trial has it.

Cannot: say what a strong passphrase costs, as opening is not measured and its key derivation is as short as
cryptsetup allows; authenticate (dm-integrity); keep prepared data for the next run, whose key is gone with this one.
"""

import os
import re
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
from dbdyno.study.schema import EncryptionSection, TrialSpec

KEY_BYTES = 64  # of what opens the LUKS header, random
MODULE = "dm-crypt"
_SECTOR_BYTES = 512  # where a table says nothing else
_ITERATIONS = 1000  # of PBKDF2, the fewest that cryptsetup takes


@dataclass(frozen=True)
class Encryption:
    """Encrypts the one device or volume below."""

    section: EncryptionSection
    fresh: bool  # make it anew, rather than open what the device holds
    key: bytes
    name: str = "encryption"

    @contextmanager
    def raised(self, below: StackContext) -> Iterator[StackContext]:
        """The mapping over what is below, open for as long as the context lasts."""
        (source,) = below.sources
        mapping = f"dbdyno-{below.scratch.name}-crypt"
        load_module(MODULE)
        if self.fresh:
            self._format(source)
        with below.journal.undoing(RemoveMappings(mapping)):
            queues = [] if self.section.workqueues else ["--perf-no_read_workqueue", "--perf-no_write_workqueue"]
            self._cryptsetup("open", "--type", "luks2", *queues, source, mapping)
            observed = observed_table(run_tool(["dmsetup", "table", mapping]))
            self._check(observed)
            yield below.raised(self.name, observed, volume=Path("/dev/mapper") / mapping)

    def _format(self, source: str) -> None:
        section = self.section
        made = ("--cipher", section.cipher, "--key-size", str(section.key_bits), "--sector-size", str(section.sector))
        derived = ("--pbkdf", "pbkdf2", "--pbkdf-force-iterations", str(_ITERATIONS))
        self._cryptsetup("luksFormat", "--batch-mode", "--type", "luks2", *made, *derived, source)

    def _cryptsetup(self, *argv: str) -> None:
        """Run cryptsetup, which reads the key from a pipe."""
        reading, writing = os.pipe()
        try:
            os.write(writing, self.key)  # fewer bytes than any pipe holds
            os.close(writing)
            key = ("--key-file", f"/proc/self/fd/{reading}", "--keyfile-size", str(len(self.key)))
            run_tool(["cryptsetup", *argv[:1], *key, *argv[1:]], pass_fds=(reading,))
        finally:
            os.close(reading)

    def _check(self, observed: dict[str, Any]) -> None:
        """Raises ``TrialError`` with every setting that did not take."""
        section = self.section
        asked: dict[str, Any] = {"cipher": section.cipher, "key_bits": section.key_bits}
        asked |= {"sector_bytes": section.sector, "workqueues": section.workqueues}
        wrong = [f"{name} {value}, it is {observed[name]}" for name, value in asked.items() if observed[name] != value]
        if wrong:
            raise TrialError(f"encryption: asked for {'; '.join(wrong)}")


def observed_table(table: str) -> dict[str, Any]:
    """What a line of ``dmsetup table`` says of a mapping of dm-crypt; its key is hidden or in the kernel's keyring.

    Format: Documentation/admin-guide/device-mapper/dm-crypt.rst. Raises ``TrialError`` where it is no such line.
    """
    fields = table.split()
    if len(fields) < 8 or fields[2] != "crypt":  # noqa: PLR2004  (start, length, target, cipher, key, offset, device, ...)
        raise TrialError(f"dmsetup table: expected a mapping of dm-crypt, it is {table.strip()[:200]!r}")
    cipher, key, options = fields[3], fields[4], fields[8:]
    in_keyring = re.match(r":(\d+):", key)  # :<bytes>:<type>:<description>
    sector = next((option.partition(":")[2] for option in options if option.startswith("sector_size:")), "")
    return {
        "kind": "luks",
        "cipher": cipher,
        "key_bits": 8 * int(in_keyring[1]) if in_keyring else 4 * len(key),
        "sector_bytes": int(sector or _SECTOR_BYTES),
        "workqueues": not {"no_read_workqueue", "no_write_workqueue"} <= set(options),
    }


class _Luks(Between):
    FIELD: ClassVar[str] = "encryption"
    PROGRAMS: ClassVar[dict[str, str]] = {"cryptsetup": "cryptsetup-bin", "dmsetup": "dmsetup"}
    TOUCHES: ClassVar[str] = "mapped: a dm-crypt device over the disk of each trial; closed afterwards"

    def modules(self, spec: TrialSpec) -> list[str]:
        return [MODULE]

    def on_disk(self, spec: TrialSpec) -> list[object]:
        return [spec.encryption.cipher, spec.encryption.key_bits, spec.encryption.sector]

    def layer(self, spec: TrialSpec, *, fresh: bool, key: bytes) -> Layer:
        return Encryption(spec.encryption, fresh, key or os.urandom(KEY_BYTES))


BETWEEN = _Luks()
