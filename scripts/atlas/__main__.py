"""``python -m scripts.atlas``: make the first atlas, or make it anew.

The repository keeps studies and no run folders. So the studies whose stacks are simulated are run, drives and kernels
are swept, this disk is looked at, and the run folders in ``runs/`` are taken as they are; with ``--field-reports`` the
field reports are run before, which takes a night. What is finished is not made again. Ends with 1 if any failed.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from dbdyno._native import device_models
from dbdyno.share.atlas import build
from dbdyno.store.run_folder import is_begun, read_run
from dbdyno.study.load import load_study

ROOT = Path(__file__).parents[2]
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
    parser.add_argument("--field-reports", action="store_true", help="run the field reports first; a night")
    parser.add_argument("--no-quick", action="store_true", help="leave out the look at this disk, 40 seconds")
    asked = parser.parse_args()
    results = asked.into / "results"
    results.mkdir(parents=True, exist_ok=True)
    failed = []
    if asked.field_reports and subprocess.run([sys.executable, "-m", "scripts.field_reports"], check=False).returncode:
        failed.append("the field reports")
    failed += [*_run_simulated(results, asked.names), *_sweep(results)]
    if not asked.no_quick:
        look = ["quick", str(results), "--html", str(results / "quick.html"), "--json"]
        failed += _make(results / "quick.json", look)
    built = build([results, *_run_folders(asked.runs, asked.into)], asked.into / "site")
    for path, why in built.left_out.items():
        print(f"left out: {path}: {why}", file=sys.stderr)
    print(f"atlas of {len(built.entries)} results: {asked.into / 'site' / 'index.html'}")
    if failed:
        print(f"could not be made: {', '.join(failed)}; see above", file=sys.stderr)
    return 1 if failed else 0


def _run_simulated(results: Path, names: list[str]) -> list[str]:
    """Run the studies whose stacks are all simulated, or go on with them; return the names of those that failed."""
    studies = {study.stem: study for study in sorted(ROOT.glob("studies/*/*.toml")) if _is_simulated(study)}
    failed = sorted(set(names) - set(studies))
    for name in failed:
        print(f"no simulated study is called {name}; there are {', '.join(studies)}", file=sys.stderr)
    for study in (study for name, study in studies.items() if name in (names or studies)):
        into = results / study.stem
        if is_begun(into) and read_run(into).ended == "done":
            continue
        print(f"== {study.relative_to(ROOT)}", flush=True)
        if _dbdyno(["run", str(study), "--into", str(into), "--wait", *(["--resume"] if is_begun(into) else [])]):
            failed.append(study.stem)
    return failed


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
