"""Client hosts that are limited on purpose, and ones that are not: how often a trial's figures say so.

    sudo .venv/bin/python -m benches.client_limits [--times 20] [--strict] [--json FILE]

Two client hosts (this machine under two names) load a real server. As in sysbench#482, where two machines give more
than one, c1 has a share of one processor, as programs compete for it. Not limited: the rate is low. Judged is as in a
report, by three trials of a treatment at a time.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benches.figures import at_least, at_most, write
from dbdyno.analysis.client_hosts import limiting_hosts
from tests.client_hosts import connected_to, run_over, study_text

SPINNERS = 3  # on the processor of a limited host, whose part is then a fourth
CASES = {"a busy processor": "", "no limit": "rate = 200"}
BLOCKS = 3  # of a treatment that is judged


@contextmanager
def limited(case):
    """Words before the commands of c1 that limit it."""
    with ExitStack() as stack:
        if case == "no limit":
            yield ()
            return
        core = str(max(os.sched_getaffinity(0)))
        on_it = ("taskset", "--cpu-list", core)
        for _ in range(SPINNERS):
            spinner = stack.enter_context(subprocess.Popen([*on_it, sys.executable, "-c", "while True: pass"]))
            stack.callback(spinner.kill)
        yield on_it


def named(case, times):
    """The hosts that are named, so many times, and the figures that they were judged by."""
    with limited(case) as words, tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server runs as an ordinary user
        os.environ["DBDYNO_STATE_DIR"] = f"{folder}/state"
        with connected_to(Path(folder), "c1", "c2", prefixes={"c1": words}) as hosts:
            text = study_text(settings="", workload=CASES[case], blocks=times * BLOCKS, duration="1s")
            run, _, _ = run_over(Path(folder), text, hosts)
    judged = [run.trials[first : first + BLOCKS] for first in range(0, len(run.trials), BLOCKS)]
    return [(limiting_hosts(trials), [trial.load["client_hosts"] for trial in trials]) for trials in judged]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, help="that each case is judged")
    parser.add_argument("--only", choices=CASES, nargs="*", default=list(CASES))
    parser.add_argument("--strict", action="store_true", help="exit 1 where a limit is not met")
    parser.add_argument("--json", type=Path, help="where the figures go")
    given = parser.parse_args()
    figures, details = [], {}
    for case in given.only:
        found = named(case, given.times)
        details[case] = [{"named": names, "hosts": hosts} for names, hosts in found]
        if case == "no limit":
            figures.append(at_most(f"of {len(found)} times, a host was named though none is limited",
                                   sum(bool(names) for names, _ in found), 0))  # fmt: skip
        else:
            figures.append(at_least(f"share of {len(found)} times that c1 was named, limited: {case}",
                                    sum("c1" in names for names, _ in found) / len(found), 1.0))  # fmt: skip
        print(f"{figures[-1].value:9.4f}  {figures[-1].name}: {'met' if figures[-1].met else 'NOT MET'}", flush=True)
    write(given.json, figures, details)
    if given.strict and not all(figure.met for figure in figures):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
