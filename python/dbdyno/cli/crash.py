"""``dbdyno crash``: the power cuts of a run, one by one, and the states that are kept of them."""

import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dbdyno.cli.options import HOSTS
from dbdyno.cli.output import JSON, print_done, print_json, table
from dbdyno.cli.show import INTERRUPTED
from dbdyno.cli.suggestions import kept_cuts, run_folders
from dbdyno.errors import TrialError, UserError
from dbdyno.filesystems import KINDS
from dbdyno.model.cut import OUTCOME_WORDS, OUTCOMES, Cut
from dbdyno.model.printable import printable
from dbdyno.model.wording import count
from dbdyno.store.cuts import cuts_of, name_of
from dbdyno.store.records import Run, Trial
from dbdyno.study.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbdyno.run.kept_states import Examined, Examining, State


# What the verbs of ``dbdyno crash`` are given, and what the shell offers for it.


RUN = typer.Argument(metavar="RUN", help="The run folder.", autocompletion=run_folders)
CUT = typer.Argument(metavar="TRIAL/CUT", help="A cut whose state is kept.", autocompletion=kept_cuts)
CUT_OR_ALL = typer.Argument(
    "", metavar="TRIAL/CUT", help="A cut whose state is kept; all of them if not given.", autocompletion=kept_cuts
)


# ``dbdyno crash examine``: kept states recovered and verified once more.


def examine(run: Path = RUN, cut: str = CUT_OR_ALL, hosts: Path | None = HOSTS, json_: bool = JSON) -> None:
    """Examine a kept state, or all, again: mount, check, server, verify; exits 1 where an outcome is another one."""
    from dbdyno.run.kept_states import State, kept_states
    from dbdyno.store.cuts import cut_called, kept_folder
    from dbdyno.store.others import last_resort
    from dbdyno.store.run_folder import read_run

    with last_resort(run):
        loaded_run = read_run(run)
    if cut:
        trial, before = cut_called(loaded_run, cut)
        (sole_examination,) = _all(run, [State(cut, before, kept_folder(run, trial, before))], hosts, lambda _: None)
        _print_examination(sole_examination, json_=json_)
        same = sole_examination.is_same
    else:
        examinations = _all(
            run,
            kept_states(run, loaded_run),
            hosts,
            lambda examination: None if json_ else print(line_of(examination), flush=True),
        )
        print_json(all_as_dict(str(run), examinations)) if json_ else print(total_of(examinations))
        same = all(examination.is_same for examination in examinations)
    if not same:
        raise typer.Exit(1)


def _all(
    run: Path, states: "Sequence[State]", hosts: Path | None, shown: "Callable[[Examined], None]"
) -> "list[Examined]":
    """What is found on each, here or on hosts; ``shown`` has each as soon as it and those before it are known."""
    from dbdyno.system.interrupt import Interrupted

    examinations: list[Examined] = []
    if not states:
        return examinations
    try:
        with ExitStack() as stack:
            examining = _on_hosts(run, states, hosts, stack) if hosts else _here(run, stack)
            for examination in examining(states):
                shown(examination)
                examinations.append(examination)
    except Interrupted:
        raise typer.Exit(INTERRUPTED) from None
    return examinations


def _here(run: Path, stack: ExitStack) -> "Examining":
    from dbdyno.run.kept_states import here, missing_capabilities
    from dbdyno.system.locks import alone_on_host, only_one

    if missing := missing_capabilities(examining=True):
        raise UserError("\n".join(need.said for need in missing))
    stack.enter_context(only_one("crash examine", wait=False, say=typer.echo))
    stack.enter_context(alone_on_host(wait=False, say=typer.echo))
    return here(run)


def _on_hosts(run: Path, states: "Sequence[State]", hosts: Path, stack: ExitStack) -> "Examining":
    from dbdyno.cli.output import say
    from dbdyno.hosts.connect import connected
    from dbdyno.run.reexamine import ExaminerAccess, on_hosts

    there = stack.enter_context(connected(hosts))
    return stack.enter_context(on_hosts(run, states, ExaminerAccess(there.hosts, there.why_lost, say)))


def _print_examination(examination: "Examined", *, json_: bool) -> None:
    from dataclasses import asdict

    if examination.again is None:
        raise UserError(examination.why) if examination.is_damaged else TrialError(examination.why)
    values = {"cut": examination.name, "same_outcome": examination.is_same, "checked": examination.is_checked}
    values |= {"before": asdict(examination.before), "again": asdict(examination.again)}
    text = examined_as_text(examination.name, examination.before, examination.again)
    print_done(text if examination.is_checked else f"{text}\n{UNCHECKED}", values, json_=json_)


# ``dbdyno crash keep``: a state that a run has kept, as a raw image to be looked at by hand.


def keep(
    run: Path = RUN,
    cut: str = CUT,
    folder: Path = typer.Argument(metavar="FOLDER", help="A new folder, or one without a disk.img."),
    json_: bool = JSON,
) -> None:
    """Copy a kept state out as a raw image, FOLDER/disk.img, and say how to mount it by hand."""
    from dbdyno.run.kept_states import copy_out, missing_capabilities, spec_of
    from dbdyno.store.cuts import cut_called, kept_folder
    from dbdyno.store.others import last_resort
    from dbdyno.store.run_folder import read_run

    with last_resort(run):
        trial, cut_record = cut_called(read_run(run), cut)
    state = kept_folder(run, trial, cut_record)
    if missing := missing_capabilities(examining=False):
        raise UserError("\n".join(need.said for need in missing))
    spec = spec_of(run, trial.treatment)
    folder.mkdir(parents=True, exist_ok=True)
    image = copy_out(state, spec, folder)
    filesystem = spec.stack.filesystem or ""
    values = {"image": str(image), "filesystem": filesystem, "cut": cut, "outcome": cut_record.outcome}
    text = image_as_text(image, filesystem, cut, cut_record)
    is_checked = bool(cut_record.kept_sha256)
    print_done(text if is_checked else f"{text}\n{UNCHECKED}", {**values, "checked": is_checked}, json_=json_)


app = typer.Typer(help="Power cuts of a run: list them, look at a state that was kept.", rich_markup_mode=None)
app.command("keep")(keep)
app.command("examine")(examine)


@app.command("list")
def list_(
    run: Path = RUN,
    lost: bool = typer.Option(False, "--lost", help="Only cuts that lost something."),
    kept: bool = typer.Option(False, "--kept", help="Only cuts whose state is kept."),
    json_: bool = JSON,
) -> None:
    """List the cuts of a run: when, what survived, the outcome and its cause, the seed, whether the state is kept."""
    from dbdyno.store.cuts import cuts_of
    from dbdyno.store.others import last_resort
    from dbdyno.store.run_folder import read_run

    with last_resort(run):
        loaded_run = read_run(run)
        listed_cuts = [
            (trial, cut) for trial, cut in cuts_of(loaded_run) if (cut.is_loss or not lost) and (cut.kept or not kept)
        ]
        if json_:
            print_json({"run": str(run), "cuts": [cut_as_dict(loaded_run, trial, cut) for trial, cut in listed_cuts]})
        else:
            print(printable(cuts_as_text(loaded_run, listed_cuts), keep="\n"))


# Cuts in words.


CAUSE_CHARS = 60  # shown of a cause; JSON has it whole
_HEAD = ("cut", "treatment", "when", "survivors", "outcome", "state", "cause", "lost", "ms", "seed")
_NUMBERS_FROM = _HEAD.index("lost")


def cuts_as_text(run: Run, cuts: Sequence[tuple[Trial, Cut]]) -> str:
    """A line for each cut, worst outcomes first, and how many there are of each outcome."""
    if not cuts:
        has_cuts = any(trial.cuts for trial in run.trials)
        return "no such cut" if has_cuts else "this run has no cuts: they are of studies with [crash]"
    worst_first = sorted(cuts, key=lambda trial_and_cut: OUTCOMES.index(trial_and_cut[1].outcome))
    rows = [_row(run, trial, cut) for trial, cut in worst_first]
    has_hosts = len({trial.host for trial, _ in cuts_of(run)}) > 1
    if has_hosts:
        rows = [[name, trial.host, *rest] for (name, *rest), (trial, _) in zip(rows, worst_first, strict=True)]
    met = Counter(cut.outcome for _, cut in cuts)
    totals = [
        f"{outcome}: {OUTCOME_WORDS[outcome]}, in {met[outcome]} of {count(len(cuts), 'cut')}"
        for outcome in OUTCOMES
        if met[outcome]
    ]
    head, right = ((_HEAD[0], "host", *_HEAD[1:]), _NUMBERS_FROM + 1) if has_hosts else (_HEAD, _NUMBERS_FROM)
    return "\n".join([table(head, rows, right=right), "", *totals])


def _row(run: Run, trial: Trial, cut: Cut) -> list[str]:
    cause = printable(cut.cause)
    return [
        name_of(trial, cut),
        run.design.labels.get(trial.treatment, trial.treatment),
        cut.when if cut.mode == "power" else f"{cut.when} ({cut.mode})",
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
    used = format_bytes(image.stat().st_blocks * 512)
    size = format_bytes(image.stat().st_size)
    what = filesystem or "the second drive"
    lines = [f"{image}: {size}, of which {used} are on the disk; {what} as cut {name} left it, before any recovery"]
    lines += [f"what was found on it: {OUTCOME_WORDS[cut.outcome]}{f' ({cut.cause})' * bool(cut.cause)}", ""]
    if not filesystem:
        return "\n".join([*lines, "look at it in a machine whose system knows what is on it; work on a copy"])
    kind, file, copy = KINDS[filesystem], shlex.quote(str(image)), shlex.quote(str(image.with_name("copy.img")))
    if not kind.mountable:
        where = shlex.quote(str(image.parent))
        return "\n".join([*lines, "look at the pool, by zfs-fuse:", f"  zpool import -d {where} -o readonly=on -a"])
    lines += [
        "look at it as it is, without replaying the journal; the server's data are in /mnt/server:",
        f"  mount -o loop,{kind.as_it_is} {file} /mnt",
    ]
    if kind.check:
        lines += ["check it without repairing:", f"  {shlex.join(kind.check)} {file}"]
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
    return printable(f"{name}: {_outcome_text(before, again, cause=True)}\n{counted}; {steps}", keep="\n")


def line_of(examination: "Examined") -> str:
    """The same of one of many: nothing that differs from host to host where the outcome does not."""
    if examination.again is None:
        return printable(f"{examination.name}: not examined: {examination.why}")
    counted = f"{count(examination.again.lost, 'acknowledged commit')} lost of {examination.again.acked}"
    outcome_text = _outcome_text(examination.before, examination.again, cause=not examination.is_same)
    line = printable(f"{examination.name}: {outcome_text}; {counted}")
    return line if examination.is_checked else f"{line}; {UNCHECKED}"


def _outcome_text(before: Cut, again: Cut, *, cause: bool) -> str:
    outcome_text = f"{OUTCOME_WORDS[again.outcome]}{f': {again.cause}' * bool(again.cause and cause)}"
    same = (
        "as when it was examined first"
        if again.outcome == before.outcome
        else f"before: {OUTCOME_WORDS[before.outcome]}"
    )
    return f"{outcome_text} ({same})"


def total_of(examinations: "Sequence[Examined]") -> str:
    """How many there were, and how many had the same outcome."""
    if not examinations:
        return "this run has kept no state"
    alike = sum(examination.is_same for examination in examinations)
    return f"{count(len(examinations), 'kept state')} examined again: the same outcome in {alike}"


def all_as_dict(run: str, examinations: "Sequence[Examined]") -> dict[str, Any]:
    """Everything of many, for a script; a cause is that of before where the outcome is the same."""
    return {
        "run": run,
        "same_outcome": all(examination.is_same for examination in examinations),
        "examined": [
            {
                "cut": examination.name,
                "same_outcome": examination.is_same,
                "checked": examination.is_checked,
                "before": _state_alone(examination.before),
                "again": _again(examination),
                "why_not": examination.why or None,
            }
            for examination in examinations
        ],
    }


def _again(examination: "Examined") -> dict[str, Any] | None:
    if examination.again is None:
        return None
    return _state_alone(examination.again) | ({"cause": examination.before.cause} if examination.is_same else {})


def _state_alone(cut: Cut) -> dict[str, Any]:
    return {name: value for name, value in asdict(cut).items() if name not in OF_A_HOST}
