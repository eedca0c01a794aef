"""Cuts in words."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dbdyno.cli.text_table import table
from dbdyno.filesystems.catalogue import KINDS
from dbdyno.model.cut import OUTCOME_WORDS, OUTCOMES, Cut
from dbdyno.model.printable import printable
from dbdyno.model.wording import count
from dbdyno.store.cuts import cuts_of, name_of
from dbdyno.store.records import Run, Trial
from dbdyno.study.units import format_bytes

CAUSE_CHARS = 60  # shown of a cause; JSON has it whole
_HEAD = ("cut", "treatment", "when", "survivors", "outcome", "state", "cause", "lost", "ms", "seed")
_NUMBERS_FROM = _HEAD.index("lost")


def cuts_as_text(run: Run, found: Sequence[tuple[Trial, Cut]]) -> str:
    """A line for each cut, worst outcomes first, and how many there are of each outcome."""
    if not found:
        has_cuts = any(trial.cuts for trial in run.trials)
        return "no such cut" if has_cuts else "this run has no cuts: they are of studies with [crash]"
    worst_first = sorted(found, key=lambda one: OUTCOMES.index(one[1].outcome))
    rows = [_row(run, trial, cut) for trial, cut in worst_first]
    has_hosts = len({trial.host for trial, _ in cuts_of(run)}) > 1
    if has_hosts:
        rows = [[name, trial.host, *rest] for (name, *rest), (trial, _) in zip(rows, worst_first, strict=True)]
    met = Counter(cut.outcome for _, cut in found)
    totals = [
        f"{one}: {OUTCOME_WORDS[one]}, in {met[one]} of {count(len(found), 'cut')}" for one in OUTCOMES if met[one]
    ]
    head, right = ((_HEAD[0], "host", *_HEAD[1:]), _NUMBERS_FROM + 1) if has_hosts else (_HEAD, _NUMBERS_FROM)
    return "\n".join([table(head, rows, right=right), "", *totals])


def _row(run: Run, trial: Trial, cut: Cut) -> list[str]:
    cause = printable(cut.cause)
    return [
        name_of(trial, cut),
        run.design.labels.get(trial.treatment, trial.treatment),
        cut.when if cut.mode == "power" else f"{cut.when} (kill)",
        cut.survivors or "-",
        cut.outcome,
        "kept" if cut.kept else "-",
        cause if len(cause) <= CAUSE_CHARS else f"{cause[: CAUSE_CHARS - 3]}...",
        f"{cut.lost}",
        "-" if cut.lost_ms is None else f"{cut.lost_ms:.1f}",
        f"{cut.seed}",
    ]


def cut_as_dict(run: Run, trial: Trial, cut: Cut) -> dict[str, Any]:
    """Everything that is known of a cut, for a script."""
    label = run.design.labels.get(trial.treatment, trial.treatment)
    return {
        "name": name_of(trial, cut),
        "treatment": trial.treatment,
        "label": label,
        "block": trial.block,
        "host": trial.host or None,
        **asdict(cut),
    }


def image_as_text(image: Path, filesystem: str, name: str, cut: Cut) -> str:
    """Where the image is, and how to look at it by hand."""
    kind, file, copy = KINDS[filesystem], shlex.quote(str(image)), shlex.quote(str(image.with_name("copy.img")))
    used = format_bytes(image.stat().st_blocks * 512)
    size = format_bytes(image.stat().st_size)
    lines = [
        f"{image}: {size}, of which {used} are on the disk; {filesystem} as cut {name} left it, before any recovery"
    ]
    lines += [f"what was found on it: {OUTCOME_WORDS[cut.outcome]}{f' ({cut.cause})' * bool(cut.cause)}", ""]
    if not kind.mountable:
        where = shlex.quote(str(image.parent))
        return "\n".join([*lines, "look at the pool, by zfs-fuse:", f"  zpool import -d {where} -o readonly=on -a"])
    lines += [
        "look at it as it is, without replaying the journal; the server's data are in /mnt/server:",
        f"  mount -o loop,{kind.as_it_is} {file} /mnt",
    ]
    if kind.check:
        lines += ["have it checked, mending nothing:", f"  {shlex.join(kind.check)} {file}"]
    lines += ["let it recover, on a copy:", f"  cp --sparse=always {file} {copy}", f"  mount -o loop {copy} /mnt"]
    return "\n".join(lines)
