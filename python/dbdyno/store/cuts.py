"""The cuts of a run, where states that are kept of them lie, and their checksums."""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.model.cut import Cut
from dbdyno.store.documents import json_object
from dbdyno.store.parts import damaged, unread
from dbdyno.store.records import Run, Trial
from dbdyno.system.files import open_blocks, open_regular, read_regular

# The checksums of a kept state: of every file in its folder, written when it is kept and checked before it is used.
#
# A flipped bit in an image would pass for what a power cut left. So the list of checksums lies beside the files, and
# the trial's own file, which the event log vouches for, holds the checksum of the list.


SUMS = "sums.json"
_SUMS_BYTES_MAX = 64 * 1024
_BLOCK_BYTES = 64 * 1024
_REMEDY = "put the state back from a copy of the run folder"


def write_sums(folder: Path) -> str:
    """Write the checksums of all files of a state; returns the SHA-256 of the list. Raises ``OSError``."""
    sums = {path.name: _file_sum(path) for path in sorted(folder.iterdir())}
    content = json.dumps(sums, indent=1).encode() + b"\n"
    (folder / SUMS).write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def verify_list(folder: Path, sha256: str) -> None:
    """Raise ``DamageError`` unless a state's list of checksums has this SHA-256, where its trial holds one."""
    if sha256 and hashlib.sha256(_read_list(folder)).hexdigest() != sha256:
        raise damaged(folder / SUMS, "its SHA-256 is another than the trial's own file says", _REMEDY)


def verify_sums(folder: Path) -> None:
    """Raise ``DamageError`` unless the files of a state are those that were kept, with what they held then.

    Of a state that has no list, kept by an earlier version, only regular files are accepted.
    """
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise unread(folder, error, _REMEDY) from None
    sums = _sums_of(folder) if SUMS in names else None
    for name in sorted({*names, *(sums or {})} - {SUMS}):
        path = folder / name
        if name not in names:
            raise damaged(path, "it is missing", _REMEDY)
        if sums is not None and name not in sums:
            raise damaged(path, "it was not there when the state was kept", "remove it")
        try:
            handle = open_regular(path, os.O_RDONLY)
            os.close(handle)
            if sums is not None and _file_sum(path, sums[name]) != sums[name]:
                raise damaged(path, "it has been changed since the state was kept: its checksum is another", _REMEDY)
        except OSError as error:
            raise unread(path, error, _REMEDY) from None


def _sums_of(folder: Path) -> dict[str, object]:
    """The list of a state: file name -> its bytes and checksum. Raises ``DamageError``."""
    try:
        return json_object(_read_list(folder))
    except ValueError as error:
        raise damaged(folder / SUMS, str(error), _REMEDY) from None


def _read_list(folder: Path) -> bytes:
    try:
        return read_regular(folder / SUMS, _SUMS_BYTES_MAX, follow=False)
    except OSError as error:
        raise unread(folder / SUMS, error, _REMEDY) from None


def _file_sum(path: Path, expected: object = None) -> dict[str, object]:
    """The bytes and the checksum of a file; of one that has not the bytes that are expected, no checksum.

    The checksum is the SHA-256 of the file's blocks of 64 KiB that hold anything but zeros, each after its offset as 8
    bytes (little-endian). So holes, which a copy may fill, change nothing, and cost nothing to check.
    """
    handle = open_regular(path, os.O_RDONLY)
    try:
        size = os.fstat(handle).st_size
        if isinstance(expected, dict) and expected.get("bytes") != size:
            return {"bytes": size}
        digest = hashlib.sha256()
        for offset, block in open_blocks(handle, _BLOCK_BYTES):
            digest.update(offset.to_bytes(8, "little"))
            digest.update(block)
        return {"bytes": size, "sha256": digest.hexdigest()}
    finally:
        os.close(handle)


CUTS = "cuts"  # the folder of kept states in a trial's
CUT_ID = re.compile(r"[a-z]{1,8}[0-9]{1,9}")


def cuts_of(run: Run) -> Iterator[tuple[Trial, Cut]]:
    """Return every cut with its trial, in run order, those of blocks that do not count too."""
    return ((trial, cut) for trial in run.trials for cut in trial.cuts)


def name_of(trial: Trial, cut: Cut) -> str:
    """Return what a cut is called on the command line: ``b0001a1p001-t1/c3``."""
    return f"{trial.id}/{cut.id}"


def cut_called(run: Run, name: str) -> tuple[Trial, Cut]:
    """Return the cut of that name with its trial. Raises ``UserError`` where the run has none."""
    trial_and_cut = next(((trial, cut) for trial, cut in cuts_of(run) if name_of(trial, cut) == name), None)
    if trial_and_cut is None:
        raise UserError(f"{name!r} is not a cut of this run; dbdyno crash list RUN names them, as TRIAL/CUT")
    return trial_and_cut


def is_at_its_place(cut: Cut) -> bool:
    """Whether the kept state of a cut is said to lie where such a state does, and nowhere else."""
    return cut.kept == f"{CUTS}/{cut.id}" and CUT_ID.fullmatch(cut.id) is not None


def kept_folder(folder: Path, trial: Trial, cut: Cut) -> Path:
    """Return where the kept state of a cut lies.

    Raises ``UserError`` where it was not kept, or is no longer there, or its list of checksums is another one.
    """
    name = name_of(trial, cut)
    if not cut.kept:
        raise UserError(
            f"{name}: its state was not kept; dbdyno crash list RUN --kept names those that were, and "
            'keep = "all" in [crash] keeps every one that lost anything'
        )
    if not is_at_its_place(cut):
        raise UserError(f"{name}: {cut.kept!r} is not a place of a kept state; the run folder is damaged")
    state = folder / "trials" / trial.id / cut.kept
    if not state.is_dir():
        raise UserError(f"{state} is not there: the state of {name} was removed, or the run was copied without it")
    verify_list(state, cut.kept_sha256)
    return state
