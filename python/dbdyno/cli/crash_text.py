"""Cuts in words."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.cli.text_table import table
from dbdyno.filesystems.catalogue import KINDS
from dbdyno.model.cut import OUTCOME_WORDS, OUTCOMES, Cut
from dbdyno.model.printable import printable
from dbdyno.model.wording import count
from dbdyno.store.cuts import cuts_of, name_of
from dbdyno.store.records import Run, Trial
from dbdyno.study.units import format_bytes

if TYPE_CHECKING:
    from dbdyno.run.reexamine.examine import Examined


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


# What was found when kept states were examined again, in words.


UNCHECKED = (
    "an earlier version kept this state without checksums, so it can't be told whether it is still what the cut left"
)
OF_A_HOST = ("recovery_s",)  # how long it took says something of the host, not of the state


def examined_as_text(name: str, before: Cut, again: Cut) -> str:
    """Whether the outcome is the same, and how long each step took."""
    steps = ", ".join(f"{step} {seconds:.2f} s" for step, seconds in again.recovery_s.items())
    counted = f"{count(again.lost, 'acknowledged commit')} lost of {again.acked}"
    return printable(f"{name}: {_found(before, again, cause=True)}\n{counted}; {steps}", keep="\n")


def line_of(one: "Examined") -> str:
    """The same of one of many: nothing that differs from host to host where the outcome does not."""
    if one.again is None:
        return printable(f"{one.name}: not examined: {one.why}")
    counted = f"{count(one.again.lost, 'acknowledged commit')} lost of {one.again.acked}"
    found = printable(f"{one.name}: {_found(one.before, one.again, cause=not one.is_same)}; {counted}")
    return found if one.is_checked else f"{found}; {UNCHECKED}"


def _found(before: Cut, again: Cut, *, cause: bool) -> str:
    found = f"{OUTCOME_WORDS[again.outcome]}{f': {again.cause}' * bool(again.cause and cause)}"
    same = (
        "as when it was examined first"
        if again.outcome == before.outcome
        else f"before: {OUTCOME_WORDS[before.outcome]}"
    )
    return f"{found} ({same})"


def total_of(found: "Sequence[Examined]") -> str:
    """How many there were, and how many had the same outcome."""
    if not found:
        return "this run has kept no state"
    return f"{count(len(found), 'kept state')} examined again: the same outcome in {sum(one.is_same for one in found)}"


def all_as_dict(run: str, found: "Sequence[Examined]") -> dict[str, Any]:
    """Everything of many, for a script; a cause is that of before where the outcome is the same."""
    return {
        "run": run,
        "same_outcome": all(one.is_same for one in found),
        "examined": [
            {
                "cut": one.name,
                "same_outcome": one.is_same,
                "checked": one.is_checked,
                "before": _state_alone(one.before),
                "again": _again(one),
                "why_not": one.why or None,
            }
            for one in found
        ],
    }


def _again(one: "Examined") -> dict[str, Any] | None:
    if one.again is None:
        return None
    return _state_alone(one.again) | ({"cause": one.before.cause} if one.is_same else {})


def _state_alone(cut: Cut) -> dict[str, Any]:
    return {name: value for name, value in asdict(cut).items() if name not in OF_A_HOST}
