"""What a verifier and a disk would say."""

from dbdyno.stack.disk_client import CutTaken
from dbdyno.workload.ledger import Example, TableState, Verified

NUMBERS = ("acked", "unknown", "refused", "kept", "lost", "holes", "ghost", "torn", "wrong", "index_differences")


def verified(*, tables=(), examples=(), complete=True, balance_off=False, oldest_lost_ack_ns=None, **counts):
    """A verifier's result; ``tables`` are what the server said of broken ones."""
    return Verified(
        **{**dict.fromkeys(NUMBERS, 0), **counts},
        balance_off=balance_off,
        complete=complete,
        oldest_lost_ack_ns=oldest_lost_ack_ns,
        tables=[
            TableState("accounts", ok=True, text=""),
            *(TableState("ledger", ok=False, text=text) for text in tables),
        ],
        examples=[Example(1, 2, what, text) for what, text in examples],
    )


def taken(name, cut_ns=1_000, cut_end_ns=2_000, *, limit_reached=False):
    """A state that a disk has taken."""
    return CutTaken(name, cut_ns, cut_end_ns, 4096, 1, limit_reached, 0)
