"""The workload ``ledger``: transactions of which every one is known afterwards, and what a crash has left of them."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.stack.layer import Endpoint
from dbdyno.study.workloads import LedgerSection
from dbdyno.workload.generator import Generated, flags_of, run_generator

LEDGER = "ledger.bin"  # in the trial's folder: what was sent and acknowledged when
GRACE_SECONDS = 60.0


@dataclass(frozen=True)
class TableState:
    """A table as CHECK TABLE and reading it left it."""

    table: str
    ok: bool
    text: str  # what the server said of it; empty where that is nothing


@dataclass(frozen=True)
class Example:
    """A transaction that is not as it should be."""

    connection: int
    sequence: int  # its number on the connection
    what: str  # the field of ``Verified`` in which it counts
    text: str


@dataclass(frozen=True)
class Verified:
    """What is left of what was sent, as ``dbdyno-load ledger verify`` counted it.

    Numbers are of transactions, and of the statements of the DDL mix, which stand on connection 0.

    ``acked``: acknowledged before the cut; ``unknown``: sent by its end and not acknowledged before it; ``refused``:
    refused, or given up before their COMMIT was sent. Of the acknowledged, ``kept`` are there whole, ``lost`` are gone;
    ``holes``: of the lost, one that was sent after their acknowledgement is there. ``ghost``: there, though refused,
    sent after the cut or never. ``torn``: there in part. ``wrong``: there with other content.
    """

    acked: int
    unknown: int
    refused: int
    kept: int
    lost: int
    holes: int
    ghost: int
    torn: int
    wrong: int
    oldest_lost_ack_ns: int | None  # CLOCK_MONOTONIC; None: none is lost
    index_differences: int  # entries of the secondary index without their row, and the other way round
    balance_off: bool  # the accounts are not what the transfers make of them
    complete: bool  # False: a table can't be read to its end; then lost, holes, torn and index_differences are 0
    tables: list[TableState] = field(default_factory=list)
    examples: list[Example] = field(default_factory=list)  # 20 at most
    seconds: dict[str, float] = field(default_factory=dict)  # what took how long


def verified(answer: dict[str, Any]) -> Verified:
    """From the JSON that the verifier wrote. Raises ``TypeError`` or ``KeyError`` if it is another's."""
    tables = [TableState(**table) for table in answer.pop("tables")]
    examples = [Example(**example) for example in answer.pop("examples")]
    return Verified(**answer, tables=tables, examples=examples)


@dataclass(frozen=True)
class Ledger(Generated[LedgerSection]):
    """The ledger load of one treatment."""

    expect_loss: bool = False  # the server is killed while the load goes on, which is then no failure
    cut_socket: Path | None = None  # control socket of the emulated disk, which is asked for cuts
    cut_acks_after_s: tuple[float, ...] = ()  # after the first one from each of these seconds of measuring on: "ack-N"
    cut_ddls_after_s: tuple[float, ...] = ()  # the same of DDL statements: cuts "ddl-N"

    def own_flags(self) -> list[str]:
        """What the transactions are like."""
        return flags_of(self.section, "accounts", "parts", "payload", "blob_share", "blob_size", "ddl")

    def run_flags(self, folder: Path) -> list[str]:
        """Where what was sent is kept, and when the disk is to be cut."""
        flags = [f"--ledger={folder / LEDGER}"]
        if self.expect_loss:
            flags.append("--expect-loss")
        if self.cut_socket:
            flags.append(f"--cut-socket={self.cut_socket}")
        for flag, moments in (("cut-acks-after", self.cut_acks_after_s), ("cut-ddls-after", self.cut_ddls_after_s)):
            if moments:
                flags.append(f"--{flag}={','.join(f'{moment:.6f}' for moment in moments)}")
        return flags

    def verify(
        self,
        endpoint: Endpoint,
        folder: Path,
        cut_ns: int | None = None,
        cut_end_ns: int | None = None,
        limit_seconds: float = 60.0,
    ) -> Verified:
        """What is left of the load whose files are in ``folder``; the cut by CLOCK_MONOTONIC, last if None.

        A server that says nothing for ``limit_seconds`` is given up: what it was to read counts as unreadable. Raises
        ``TrialError`` where the server can't be reached or the files are another load's.
        """
        result = folder / "verified.json"
        argv = [*self._argv(endpoint.address, seed=0), f"--ledger={folder / LEDGER}", f"--json={result}"]
        argv += [f"--cut-ns={cut_ns}"] if cut_ns is not None else []
        argv += [f"--cut-end-ns={cut_end_ns}"] if cut_end_ns is not None else []
        argv += [f"--stall-timeout={max(1, round(limit_seconds))}", "verify"]
        # Each table is looked at and read, and each may take that long without a word.
        run_generator(argv, endpoint.address, 10 * limit_seconds + GRACE_SECONDS)
        try:
            return verified(json.loads(result.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise TrialError(f"the ledger's verifier left no result in {result}: {error}") from None
