"""``python -m scripts.field_reports [NAME...]``: run the field reports one after the other, or go on where they ended.

What is finished is not run again, what was begun is gone on with, and a study that fails keeps none of the others from
being run. Ends with 1 if any did not come to its end.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import IO

from dbdyno.mysql.settings import PROVISIONED
from dbdyno.study.load import load_study
from scripts.field_reports.index import index_page

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies/field-reports"
INTERRUPTED = 130


def main() -> int:
    """Run what is asked for; returns the exit code."""
    asked = _arguments()
    known = sorted(path.stem for path in STUDIES.glob("*.toml"))
    if unknown := sorted(set(asked.names) - set(known)):
        print(f"no such study: {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    names = [name for name in known if not asked.names or name in asked.names]
    asked.into.mkdir(parents=True, exist_ok=True)
    _get_servers(names, asked.scale)
    bad = []
    for place, name in enumerate(names, 1):
        print(f"\n== {name} ({place} of {len(names)})", flush=True)
        code = _run(name, asked)
        if code == INTERRUPTED:
            return code
        if code:
            bad.append(name)
        (asked.into / "index.html").write_text(index_page(asked.into), encoding="utf-8")
    print(f"\npages: {asked.into / 'index.html'}")
    if bad:
        print(f"not all of these could be measured: {', '.join(bad)}; see above", file=sys.stderr)
    return 1 if bad else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make field-reports", description="Run the field reports.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="of studies; all if none is given")
    parser.add_argument("--into", type=Path, default=ROOT / "runs/field-reports", help="where runs and pages go")
    parser.add_argument("--scale", default="", help='"full" for the published one; hours to days each')
    parser.add_argument("--blocks", type=int, help="so many blocks of each, for a first look")
    return parser.parse_args()


def _run(name: str, asked: argparse.Namespace) -> int:
    """Run a study or go on with it, and write its page; returns what dbdyno returned."""
    study, into = STUDIES / f"{name}.toml", asked.into / name
    begun = (into / "run.toml").exists()
    options = ["--resume"] if begun else []
    if not begun:
        options += ["--scale", asked.scale] if asked.scale else []
        options += ["--blocks", str(asked.blocks)] if asked.blocks else []
    with (asked.into / f"{name}.txt").open("w", encoding="utf-8") as report:
        code = _dbdyno("run", study, "--into", into, "--wait", *options, stdout=report)
    if (into / "run.toml").exists():
        page = asked.into / f"{name}.html"
        made = _dbdyno("report", into, "--html", page, stdout=subprocess.DEVNULL)
        return code or made
    return code


def _get_servers(names: list[str], scale: str) -> None:
    """Get the servers that the studies name; one that can't be had fails the studies that need it, and no others."""
    specs = [spec for name in names for _, spec in load_study(STUDIES / f"{name}.toml", scale).combinations()]
    for server in sorted({spec.stack.server for spec in specs} & set(PROVISIONED)):
        _dbdyno("servers", "add", server)


def _dbdyno(*arguments: object, stdout: IO[str] | int | None = None) -> int:
    command = [sys.executable, "-m", "dbdyno.cli.main", *map(str, arguments)]
    return subprocess.run(command, check=False, stdout=stdout).returncode


sys.exit(main())
