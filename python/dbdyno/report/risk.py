"""What a recommendation costs in safety, in words."""

from collections.abc import Sequence

from dbdyno.analysis.advice import Safety
from dbdyno.model.printable import one_line
from dbdyno.model.wording import listed
from dbdyno.report.lacking import lacking_text

_UNTRIED = "power cuts were not tried"
_MADE_UP = {"emulated", "simulated"}  # kinds of disks


def only_if(found: Safety, what: str, safer: str) -> str:
    """Return what may be done by whom it does not matter that others are safer: that comes first."""
    gaps = listed([lacking_text(one) for one in found.worse])
    return f"Only if a power cut may take data, {what}: {gaps}, unlike with {safer}"


def risk_text(found: Sequence[Safety]) -> str:
    """Return the risk of all that is recommended, the worst of it, and on what disks it was measured."""
    worst = min(found, key=lambda one: (one.durable is not False, one.durable is not None))
    return " ".join(filter(None, [f"Risk: {_risk(worst)}.", _disks({kind for one in found for kind in one.disks})]))


def _disks(kinds: set[str]) -> str:
    if made_up := kinds & _MADE_UP:
        which = "The drives were" if kinds <= _MADE_UP else "Some drives were"
        return f"{which} {listed(sorted(made_up))}: this is about drives like them."
    return "The data was in memory: nothing is said of a disk." if kinds == {"memory"} else ""


def _risk(found: Safety) -> str:
    if not found.served:
        return "nothing was measured of commits or power cuts"
    if found.worse:
        return f"as said; {_UNTRIED}"
    if found.durable:
        read = [one_line(one) for one in found.synced if one]
        how = f" (innodb_flush_log_at_trx_commit = {listed(read)} read back)" if read else ""
        return f"commits are durable as set{how}; {_UNTRIED}"
    if found.durable is None:
        unlike = ", unlike with others that were compared" if found.less_known else ""
        return f"whether commits are durable is not known{unlike}"
    gaps = listed([lacking_text(one) for one in found.lacking])
    return f"a power cut may take data, with all that was compared: {gaps}"
