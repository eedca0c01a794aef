"""The positive control of a crash study: a treatment known to lose, so that "nothing was lost" can be believed."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf

from dbdyno.model.cut import CrashMode
from dbdyno.model.quantity import size_bytes
from dbdyno.model.treatment import Treatment
from dbdyno.study.schema import TrialSpec
from dbdyno.study.section import Setting

ID = "control"
_LOG = "innodb_flush_log_at_trx_commit"
_ROCKSDB_LOG = "rocksdb_flush_log_at_trx_commit"
_LATE_LOG = "its log is written and synced once a second, not at commit"
_REDO = ("innodb_log_file_size", "innodb_redo_log_capacity")
REDO_BYTES_MIN = 64 * 1024**2  # with 8 MiB the control lost in 5 of 8 cuts at 7,000 transactions a second
_UNSYNCED = ("myisam", "aria")  # engines whose tables are files that no commit syncs, or not for long


@dataclass(frozen=True)
class Control:
    """What is run in every block beside the treatments, unless one of them is the same."""

    treatment: Treatment
    spec: TrialSpec
    why: str  # it loses, in words

    def doubt(self) -> str:
        """Return why it may lose too seldom to be a control; nothing where it will not."""
        settings = self.spec.server.settings
        for name in _REDO if settings.get(_LOG) == 0 else ():
            if name in settings and _bytes_of(settings[name]) < REDO_BYTES_MIN:
                return (
                    f"server.settings.{name} is {settings[name]}: so small a log is synced all the time, whatever is "
                    f"asked for, so that the control may lose too seldom; give {REDO_BYTES_MIN >> 20}M or more"
                )
        return ""


def _bytes_of(value: Setting) -> float:
    """What the server makes of a size; infinite where it is none, of which the server will say so."""
    with suppress(ValueError):
        return int(value) if isinstance(value, int) else size_bytes(value)
    return inf


def control_of(treatments: Sequence[Treatment], specs: Mapping[str, TrialSpec], baseline: str) -> Control:
    """Return the control of a crash study: the baseline with what makes it lose, or a treatment that is just that."""
    base = specs[baseline]
    mode: CrashMode = base.crash.mode if base.crash else "power"
    spec, called, why = _losing(base, mode)
    same = next((one for one in treatments if specs[one.id] == spec), None)
    return Control(same or Treatment(ID, {ID: f"control ({called})"}), spec, why)


def _losing(base: TrialSpec, mode: CrashMode) -> tuple[TrialSpec, str, str]:
    """The baseline made to lose, what was done to it, and why it then loses."""
    engine = base.stack.engine.lower()
    if engine == "rocksdb":
        return *_set(base, _ROCKSDB_LOG), _LATE_LOG
    if engine in _UNSYNCED and mode == "power":
        stack = base.stack.model_copy(update={"engine": "myisam"})
        return base.model_copy(update={"stack": stack}), "MyISAM", "no statement syncs what it writes"
    if engine == "innodb":
        return *_set(base, _LOG), _LATE_LOG
    # Whatever a file of another engine may keep when the server is killed, a log that is still in it is gone.
    changed, called = _set(base, _LOG)
    stack = base.stack.model_copy(update={"engine": "innodb"})
    return changed.model_copy(update={"stack": stack}), f"InnoDB, {called}", _LATE_LOG


def _set(base: TrialSpec, variable: str) -> tuple[TrialSpec, str]:
    settings = {**base.server.settings, variable: 0}
    server = base.server.model_copy(update={"settings": settings})
    return base.model_copy(update={"server": server}), f"{variable} = 0"
