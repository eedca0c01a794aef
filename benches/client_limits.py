"""Client hosts that are limited on purpose, and ones that are not: how often a trial's figures say so.

    sudo .venv/bin/python -m benches.client_limits [--trials 20] [--strict] [--json FILE]

Two client hosts (this machine under two names) load a real server. As in sysbench#482, where two machines give more
than one, c1 has a share of one processor, by programs that compete for it (*a busy processor*) or by a quota of its
control group (*a quota*). Not limited: both have what they ask for, as the rate is low. Each trial is judged by itself.
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
QUOTA = "20000 100000"  # of cpu.max: a fifth of a processor
CASES = {"a busy processor": "", "a quota": "", "no limit": "rate = 200"}


@contextmanager
def limited(case):
    """Words before the commands of c1 that limit it."""
    with ExitStack() as stack:
        if case == "a busy processor":
            core = str(max(os.sched_getaffinity(0)))
            for _ in range(SPINNERS):
                spinner = stack.enter_context(
                    subprocess.Popen(["taskset", "--cpu-list", core, sys.executable, "-c", "while True: pass"])
                )
                stack.callback(spinner.kill)
            yield ("taskset", "--cpu-list", core)
        elif case == "a quota":
            group = Path(f"/sys/fs/cgroup/dbdyno-bench-{os.getpid()}")
            group.mkdir()
            stack.callback(group.rmdir)
            (group / "cpu.max").write_text(QUOTA)
            yield ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
        else:
            yield ()


def named(case, trials):
    """The hosts that were named in each trial, and the figures that they were judged by."""
    with limited(case) as words, tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server runs as an ordinary user
        os.environ["DBDYNO_STATE_DIR"] = f"{folder}/state"
        with connected_to(Path(folder), "c1", "c2", prefixes={"c1": words}) as hosts:
            text = study_text(settings="", workload=CASES[case], blocks=trials, duration="2s")
            run, _, _ = run_over(Path(folder), text, hosts)
    return [(limiting_hosts([trial]), trial.load["client_hosts"]) for trial in run.trials]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20, help="of each case")
    parser.add_argument("--only", choices=CASES, nargs="*", default=list(CASES))
    parser.add_argument("--strict", action="store_true", help="exit 1 where a limit is not met")
    parser.add_argument("--json", type=Path, help="where the figures go")
    given = parser.parse_args()
    figures, details = [], {}
    for case in given.only:
        found = named(case, given.trials)
        details[case] = [{"named": names, "hosts": hosts} for names, hosts in found]
        if case == "no limit":
            figures.append(at_most(f"trials of {len(found)} that name a host though none is limited",
                                   sum(bool(names) for names, _ in found), 0))  # fmt: skip
        else:
            figures.append(at_least(f"share of {len(found)} trials that name c1, limited by {case}",
                                    sum("c1" in names for names, _ in found) / len(found), 1.0))  # fmt: skip
        print(f"{figures[-1].value:9.4f}  {figures[-1].name}: {'met' if figures[-1].met else 'NOT MET'}", flush=True)
    write(given.json, figures, details)
    if given.strict and not all(figure.met for figure in figures):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
