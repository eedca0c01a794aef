"""One kept state that has come to a host, examined in a process of its own."""

import json
import shutil
import tarfile
import time
from contextlib import closing
from dataclasses import asdict
from functools import cache
from pathlib import Path

from dbdyno.crash.again import examine_kept
from dbdyno.crash.kept import read_kept
from dbdyno.errors import HostError
from dbdyno.plan.plan import Plan
from dbdyno.run import sparse_tar
from dbdyno.run.kept_states import plan_of, spec_in
from dbdyno.stack.undo.log import Journal
from dbdyno.store.kept_sums import verify_sums
from dbdyno.system.full_disk import why_not_written

STATE = "state"  # the folder in the file


def pack(state: Path, into: Path) -> None:
    """Make the file of a kept state: the same content gives the same bytes.

    Raises ``OSError``, or ``UserError`` where the state is not as it was kept.
    """
    verify_sums(state)
    with tarfile.open(into, "w") as packed:
        sparse_tar.add(packed, state, STATE, plain=True)


def examined(folder: str, name: str) -> str:
    """Unpack the file ``name`` of a folder that holds the run's header and study, and examine the state in it.

    Returns JSON: ``cut``, and the CPU seconds of this process. The file is removed, and all that was made of it. Raises
    ``UserError``, ``TrialError`` or ``HostError``.
    """
    began, packed = time.process_time(), Path(folder) / name
    place = packed.with_suffix("")
    try:
        place.mkdir()
        sparse_tar.extract(packed, place)
        packed.unlink()
        state = place / STATE
        spec = spec_in(_plan(folder), read_kept(state).treatment, state)
        with closing(Journal(f"kept state {name}")) as journal:
            cut = examine_kept(state, spec, journal)
    except (OSError, tarfile.TarError) as error:
        why = why_not_written(error, place) if isinstance(error, OSError) else f"{place}: {error}"
        raise HostError(why) from None
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return json.dumps({"cut": asdict(cut), "cpu_s": time.process_time() - began})


@cache
def _plan(folder: str) -> Plan:
    return plan_of(Path(folder))
