"""The run folder on disk: ``run.toml``, ``journal.jsonl``, ``host.json`` and one folder per trial.

Truth is the journal: one fsync'd line per event; only a torn last line is forgiven. A trial counts when the journal
says ``finished``, and its files are on disk before that line is written.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from dbdyno.errors import UserError
from dbdyno.store.prices import prices_of
from dbdyno.store.records import Comparison, Design, Factor, Failure, Run, SameTreatment, Treatment, Trial, Why
from dbdyno.store.reported import reported_of
from dbdyno.store.series import write_series
from dbdyno.store.synced import write_synced

if TYPE_CHECKING:
    from dbdyno.store.series import Column

FORMAT = 1
_BEFORE_THE_HEADER = {"lock", "trials", "host.json", "host.json.part", "study.toml", "study.toml.part", "run.toml.part"}
_TRIAL_FIELDS = ("trial", "block", "attempt", "treatment")
_FIELDS = {
    "started": _TRIAL_FIELDS,
    "finished": _TRIAL_FIELDS,
    "failed": (*_TRIAL_FIELDS, "cause"),
    "dropped": ("treatment", "text"),
    "note": ("text",),
    "planned": ("blocks",),
    "resumed": ("blocks",),
    "ended": ("how",),
}  # event -> what it must say


class RunFolder:
    """A run folder that is being written; one writer at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._lock = os.open(path / "lock", os.O_WRONLY | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(f"{path} can't be written: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise UserError(f"{path}: another dbdyno is writing this run") from None
        self._journal = path / "journal.jsonl"
        _cut_torn_line(self._journal)

    def close(self) -> None:
        """Let another process write."""
        os.close(self._lock)

    def note(self, event: str, **fields: object) -> None:
        """One event, on disk when this returns."""
        handle = os.open(self._journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(handle, json.dumps({"event": event, **fields}).encode() + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)

    def trial_folder(self, trial_id: str) -> Path:
        """An empty folder for a trial that is about to begin; what an earlier, unfinished try left is removed."""
        folder = self.path / "trials" / trial_id
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def finish(self, trial: Trial, series: "Mapping[str, Mapping[str, Column]]") -> None:
        """Store a finished trial: series and scalars first, then the journal's line."""
        folder = self.path / "trials" / trial.id
        for name, columns in series.items():
            write_series(folder / f"{name}.parquet", columns)
        write_synced(folder / "trial.json", json.dumps(asdict(trial), indent=1).encode())
        about = {"trial": trial.id, "block": trial.block, "attempt": trial.attempt, "treatment": trial.treatment}
        self.note("finished", **about, **({"disturbed": True} if trial.disturbed else {}))


def create(path: Path, run: Mapping[str, Any], host: Mapping[str, Any], study: str = "") -> RunFolder:
    """A new run folder, with the ``study``'s text as it was written.

    Raises:
        UserError: it exists and is not empty, or can't be made.

    """
    import tomli_w

    try:
        path.mkdir(parents=True, exist_ok=True)
        # A run killed before its header was whole had no trial: it may be begun anew.
        if {entry.name for entry in path.iterdir()} - _BEFORE_THE_HEADER:
            raise UserError(f"{path} is not empty; name a new folder, or go on with this run by --resume")
        folder = RunFolder(path)
        (path / "trials").mkdir(exist_ok=True)
        write_synced(path / "host.json", json.dumps(host, indent=1).encode())
        if study:
            write_synced(path / "study.toml", study.encode())
        write_synced(path / "run.toml", tomli_w.dumps({"format": FORMAT, **run}).encode())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    return folder


def preload() -> None:
    """Import now what storing needs: a signal in the middle of an import leaves it half done."""
    import duckdb  # noqa: F401
    import numpy as np  # noqa: F401


def run_header(path: Path) -> dict[str, Any]:
    """``run.toml`` as it is. Raises ``UserError`` where this is no run folder of this format."""
    try:
        header = tomllib.loads((path / "run.toml").read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{path} is not a run folder: it holds no run.toml") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path / 'run.toml'}: can't be read: {error}") from None
    if header.get("format") != FORMAT:
        raise UserError(f"{path}: run format {header.get('format')!r}; this dbdyno reads format {FORMAT}")
    try:
        design_of(header)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path / 'run.toml'}: is damaged: {error!r}") from None
    return header


def events(path: Path) -> Iterator[dict[str, Any]]:
    """The journal's events, oldest first. Raises ``UserError`` at a line that is not one, but for a torn last."""
    try:
        text = (path / "journal.jsonl").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            return
        try:
            event = json.loads(line)
            whole = all(field in event for field in _FIELDS[event["event"]])
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            raise UserError(f"{path / 'journal.jsonl'}:{number}: not a journal line; the run folder is damaged")
        yield event


def design_of(header: Mapping[str, Any]) -> Design:
    """The design that ``run.toml`` holds."""
    run = header["run"]
    return Design(
        treatments=[Treatment(item["id"], dict(item["levels"])) for item in header["treatment"]],
        baseline=run["baseline"],
        comparisons=[Comparison(item["baseline"], item["level"]) for item in header.get("comparison", [])],
        blocks=run["blocks"],
        margin=run["margin"],
        metric=run["metric"],
        unit=run.get("unit", ""),
        seed=run["seed"],
        until=run.get("until", "blocks"),
        half_width=run.get("half_width"),
        budget_seconds=run.get("budget_seconds"),
        disturbed=run.get("disturbed", "note"),
        screened=list(run.get("screened", [])),
        steadiness=run.get("steadiness", False),
        factors=[Factor(**item) for item in header.get("factor", [])],
        aa=SameTreatment(**header["aa"]) if "aa" in header else None,
    )


def read_run(path: Path) -> Run:
    """Everything a run folder says but its series. Raises ``UserError`` where it can't be read."""
    header = run_header(path)
    try:
        design = design_of(header)
        reported = [reported_of(table) for table in header.get("reported", [])]
        prices = prices_of(header["cost"]) if "cost" in header else None
        trials, failures, notes, ended, extended_from = [], [], [], "running", None
        stopped: Why = ""
        for event in events(path):
            kind = event["event"]
            if kind == "finished":
                trials.append(_read_trial(path, event["trial"]))
            elif kind == "failed":
                fields = ("block", "attempt", "treatment", "cause")
                failures.append(Failure(event["trial"], *(event[field] for field in fields)))
            elif kind in {"note", "dropped"}:
                notes.append(event["text"])
            elif kind == "ended":
                ended, stopped = event["how"], _why(event)
            elif kind in {"planned", "resumed"}:
                ended, stopped = "running", ""
                extended_from = event.get("extended_from", extended_from)
                design = replace(design, **_changed(event))
        host = json.loads((path / "host.json").read_text(encoding="utf-8"))
        study_text = _study_text(path)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise UserError(f"{path}: the run folder is damaged: {error!r}") from None
    run = header["run"]
    versions = {name: str(version) for name, version in header.get("versions", {}).items()}
    return Run(
        title=run["title"],
        question=run["question"],
        design=design,
        trials=trials,
        failures=failures,
        host=host,
        versions=versions,
        ended=ended,
        notes=notes,
        setup=_setup(header["study"], {name for item in header["treatment"] for name in item["levels"]}),
        stopped=stopped,
        extended_from=extended_from,
        study=_study(header),
        expect=run.get("expect", ""),
        scale=run.get("scale", ""),
        reported=reported,
        study_file=str(run.get("study_file", "study.toml")) if study_text else "",
        study_text=study_text,
        prices=prices,
    )


def _study_text(path: Path) -> str:
    """The study file as it was run; run folders of an older dbdyno don't hold it."""
    try:
        return (path / "study.toml").read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""


def _why(event: Mapping[str, Any]) -> Why:
    """Why measuring stopped, by an ``ended`` event; journals once did not say it, because there was but one reason."""
    given = event.get("why", "blocks" if event["how"] == "done" else "")
    return next((why for why in get_args(Why) if why == given), "")


def _changed(event: Mapping[str, Any]) -> dict[str, Any]:
    """What a ``planned`` or ``resumed`` event changes of the design: when measuring stops."""
    if "until" not in event:
        return {"blocks": event["blocks"]}
    return {"blocks": event["blocks"], "until": event["until"], "budget_seconds": event.get("budget_seconds")}


def _setup(study: Mapping[str, Any], factors: set[str]) -> str:
    """What all treatments have in common, in the study's own words."""
    parts = []
    for section in ("workload", "stack", "queue", "filesystem"):
        given = dict(study.get(section, {}))
        given |= given.pop("iosched", {})
        fields = {name: value for name, value in given.items() if not isinstance(value, list)}
        # A script is known by its name; where it lay is nobody's business.
        shown = {name: Path(value).name if name in {"file", "job"} else value for name, value in fields.items()}
        parts += [f"{name} {_as_written(value)}" for name, value in shown.items() if name not in factors]
    server = dict(study.get("server", {}))
    server.pop("option_file", None)  # where it lies is nobody's business
    settings = server.pop("settings", {}) | server
    parts += [f"{name} {_as_written(value)}" for name, value in settings.items() if not isinstance(value, list)]
    return ", ".join(parts)


def _as_written(value: object) -> str:
    """A value as the study has it: true, not True."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _study(header: Mapping[str, Any]) -> dict[str, Any]:
    """The study as it was given, the user's own files by name and, as ``files``, by the SHA-256 of their content."""
    own = {**header.get("drive_files", {}), **header.get("scripts", {})}

    def named(value: Any) -> Any:  # noqa: ANN401  (whatever TOML can hold)
        if isinstance(value, dict):
            return {name: named(item) for name, item in value.items()}
        if isinstance(value, list):
            return [named(item) for item in value]
        for path in own if isinstance(value, str) else ():
            value = value.replace(path, Path(path).name)
        return value

    files = {Path(path).name: hashlib.sha256(text.encode()).hexdigest() for path, text in own.items()}
    return {**named(header["study"]), **({"files": files} if files else {})}


def _read_trial(path: Path, trial_id: str) -> Trial:
    return Trial(**json.loads((path / "trials" / trial_id / "trial.json").read_text(encoding="utf-8")))


def _cut_torn_line(journal: Path) -> None:
    """Remove what a kill left of a last line, or the next line would be glued to it."""
    if journal.exists():
        content = journal.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            os.truncate(journal, len(whole))
