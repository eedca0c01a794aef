"""``python -m scripts.atlas``: make the first atlas, or make it anew.

The studies whose stacks are simulated are run, drives are swept, and this disk is looked at; the run folders in
``runs/`` and the run of this version that the repository keeps are taken as they are. Field reports (kernels and
versions are among them) and crash studies need a host: ``--measure`` runs them, which takes a night. Of those that are
not measured here, what ``studies/results`` has is imported, and the atlas names the others as lacking. What is finished
is not made again. Ends with 1 if any failed.
"""

import argparse
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from dbdyno import __version__
from dbdyno._native import device_models
from dbdyno.share.atlas import build
from dbdyno.store.run_folder import is_begun, read_run
from dbdyno.study.load import load_study

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "studies/results"  # of studies that need a host, as dbdyno export wrote them: NAME.tar.gz
SWEEPS = {
    "random-reads": ["--rw", "randread", "--bs", "16k", "--iodepth", "1,32"],
    "random-writes": ["--rw", "randwrite", "--bs", "16k", "--iodepth", "1,32"],
    "durable-writes": ["--rw", "randwrite", "--bs", "4k", "--fsync", "1"],
}  # of every drive of the catalogue


def main() -> int:
    """Make the results that are not there yet, then a site of all; returns the exit code."""
    parser = argparse.ArgumentParser(prog="make atlas", description="Make the first atlas.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of simulated studies; all if none is given")
    parser.add_argument("--into", type=Path, default=ROOT / "runs/atlas", help="where its results and the site go")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs", help="whose run folders it shows as well")
    parser.add_argument("--measure", action="store_true", help="run field reports and crash studies too; a night, root")
    parser.add_argument("--no-quick", action="store_true", help="leave out the look at this disk, 40 seconds")
    asked = parser.parse_args()
    results = asked.into / "results"
    results.mkdir(parents=True, exist_ok=True)
    failed = [*_run_simulated(results, asked.names), *_sweep(results)]
    if asked.measure:
        failed += _measure(results, asked.runs)
    if not asked.no_quick:
        look = ["quick", str(results), "--html", str(results / "quick.html"), "--json"]
        failed += _make(results / "quick.json", look)
    own = _run_folders(asked.runs, asked.into)
    failed += _import_others(results, {path.name for path in own})
    runs = [*own, *filter(is_begun, [ROOT / "tests/kept" / __version__])]
    lacking = _missing_studies([*results.iterdir(), *runs])
    built = build([results, *runs], asked.into / "site", lacking=lacking)
    for path, why in built.left_out.items():
        print(f"left out: {path}: {why}", file=sys.stderr)
    print(f"atlas of {len(built.entries)} results: {asked.into / 'site' / 'index.html'}")
    if lacking:
        print(f"it lacks {len(lacking)} studies that need a host; ATLAS=--measure runs them")
    if failed:
        print(f"could not be made: {', '.join(failed)}; see above", file=sys.stderr)
    return 1 if failed else 0


def _run_simulated(results: Path, names: list[str]) -> list[str]:
    """Run the studies whose stacks are all simulated; return the names of those that failed."""
    studies = {study.stem: study for study in sorted(ROOT.glob("studies/*/*.toml")) if _is_simulated(study)}
    unknown = sorted(set(names) - set(studies))
    for name in unknown:
        print(f"no simulated study is called {name}; there are {', '.join(studies)}", file=sys.stderr)
    return unknown + _run([study for name, study in studies.items() if name in (names or studies)], results)


def _run(studies: list[Path], results: Path) -> list[str]:
    """Run studies, or go on with those that were begun; return the names of those that failed."""
    failed = []
    for study in studies:
        into = results / study.stem
        if _is_done(into):
            continue
        print(f"== {study.relative_to(ROOT)}", flush=True)
        if _dbdyno(["run", str(study), "--into", str(into), "--wait", *(["--resume"] if is_begun(into) else [])]):
            failed.append(study.stem)
    return failed


def _is_done(run: Path) -> bool:
    return is_begun(run) and read_run(run).ended == "done"


def _field_reports() -> list[Path]:
    """Return the field reports that a host must measure."""
    return [study for study in sorted(ROOT.glob("studies/field-reports/*.toml")) if not _is_simulated(study)]


def _crash_studies() -> list[Path]:
    return [study for study in sorted(ROOT.glob("studies/examples/*.toml")) if load_study(study).crash is not None]


def _measure(results: Path, runs: Path) -> list[str]:
    """Run the field reports and the crash studies on this host; return the names of those that failed."""
    names = [study.stem for study in _field_reports()]
    command = [sys.executable, "-m", "scripts.field_reports", *names, "--into", str(runs / "field-reports")]
    failed = ["field reports"] if subprocess.run(command, check=False).returncode else []
    return failed + _run(_crash_studies(), results)


def _import_others(results: Path, measured: Collection[str]) -> list[str]:
    """Import what the repository has of studies that were not measured here; return the names of what failed."""
    failed = []
    for file in sorted(RESULTS.glob("*.tar.gz")):
        name = file.name.removesuffix(".tar.gz")
        into = results / name
        if name in measured or is_begun(into):
            continue
        print(f"== {file.relative_to(ROOT)}", flush=True)
        if _dbdyno(["import", str(file), "--into", str(into)]):
            failed.append(name)
    return failed


def _missing_studies(results: list[Path]) -> list[str]:
    """Return the titles of the studies of which none of these results is a finished run."""
    done = {path.name for path in results if path.is_dir() and _is_done(path)}
    return [load_study(study).about.title for study in [*_field_reports(), *_crash_studies()] if study.stem not in done]


def _is_simulated(study: Path) -> bool:
    if not study.read_text(encoding="utf-8").partition("[suite]")[1]:
        return all(spec.stack.is_simulated for _, spec in load_study(study).combinations())
    return False


def _sweep(results: Path) -> list[str]:
    """Simulate a load on every drive; return the names of the sweeps that failed."""
    drives = ",".join(model["name"] for model in device_models() if model["kind"] != "ideal")
    failed = []
    for name, load in SWEEPS.items():
        sweep = ["simulate", *load, "--device", drives, "--size", "16GiB", "--seconds", "2s", "--json"]
        failed += _make(results / f"{name}.json", sweep)
    return failed


def _make(file: Path, command: list[str]) -> list[str]:
    """Write what a command prints, unless it is there; return the file's name if that failed."""
    if file.exists():
        return []
    print(f"== {file.stem}", flush=True)
    partial = file.with_suffix(".part")
    with partial.open("w", encoding="utf-8") as printed:
        code = subprocess.run(
            [sys.executable, "-m", "dbdyno.cli.main", *command], check=False, stdout=printed
        ).returncode
    if code:
        partial.unlink()
        return [file.stem]
    partial.rename(file)
    return []


def _run_folders(runs: Path, besides: Path) -> list[Path]:
    """Return the run folders in a folder and in those in it, but for the atlas's own."""
    found = [path for path in sorted([*runs.glob("*"), *runs.glob("*/*")]) if path.is_dir() and is_begun(path)]
    return [path for path in found if besides.resolve() not in path.resolve().parents]


def _dbdyno(arguments: list[str]) -> int:
    return subprocess.run(
        [sys.executable, "-m", "dbdyno.cli.main", *arguments], check=False, stdout=subprocess.DEVNULL
    ).returncode


sys.exit(main())
