"""The ledger's flags, and what is read of its verifier."""

from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.study.workloads import LedgerSection
from dbdyno.workload.ledger import Example, Ledger, TableState, verified

COUNTS = dict.fromkeys(("acked", "unknown", "refused", "kept", "lost", "holes", "ghost", "torn", "wrong"), 0)
ANSWER = {
    **COUNTS,
    "lost": 3,
    "oldest_lost_ack_ns": 77,
    "index_differences": 1,
    "balance_off": True,
    "complete": True,
    "tables": [{"table": "ledger", "ok": False, "text": "Corrupt"}],
    "examples": [{"connection": 1, "sequence": 2, "what": "lost", "text": "is gone"}],
    "seconds": {"all": 0.5},
}


def test_a_verification_is_read():
    found = verified(dict(ANSWER))
    assert (found.lost, found.oldest_lost_ack_ns, found.balance_off) == (3, 77, True)
    assert found.tables == [TableState("ledger", ok=False, text="Corrupt")]
    assert found.examples == [Example(1, 2, "lost", "is gone")]


@pytest.mark.parametrize("missing", ["tables", "kept"])
def test_an_answer_of_another_kind_is_refused(missing):
    with pytest.raises((KeyError, TypeError)):
        verified({name: value for name, value in ANSWER.items() if name != missing})


def test_only_a_run_is_cut():
    load = Ledger(LedgerSection(kind="ledger", duration="1s", ddl=True, blob_share=0), "innodb")
    assert load.own_flags() == [
        *("--accounts=20000", "--parts=2", "--payload=200"),
        *("--blob-share=0", "--blob-size=20000", "--ddl=on"),
    ]
    folder = Path("/run/t1")
    assert load.run_flags(folder) == ["--ledger=/run/t1/ledger.bin"]
    cut = replace(load, expect_loss=True, cut_socket=Path("/s"), cut_acks_after_s=(0.25, 5.0), cut_ddls_after_s=(2.0,))
    flags = ["--expect-loss", "--cut-socket=/s", "--cut-acks-after=0.250000,5.000000", "--cut-ddls-after=2.000000"]
    assert cut.run_flags(folder)[1:] == flags
    assert cut.own_flags() == load.own_flags()
