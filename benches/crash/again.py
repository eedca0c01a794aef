"""The same again: a kept state that is examined twice more gives the outcome and the counts that it gave in its run."""

import contextlib
from collections import Counter

from benches.crash.studies import run, study
from dbdyno.crash.examine import examine_kept
from dbdyno.crash.trial_cuts import read_kept
from dbdyno.plan.plan import make_plan
from dbdyno.stack.undo_log import Journal
from dbdyno.study.load import load_study

# Of all kinds of damage: a filesystem without a journal, an engine without a log, and commits without a flush.
STACK = 'device = "ssd-sata"\nfilesystem = ["ext4", "ext2"]\nengine = ["innodb", "myisam"]'
COUNTS = ("acked", "unknown", "lost", "holes", "ghost", "torn", "wrong")
TIMES = 2


def damaged(folder, cuts, seed):
    """Run a study of which nearly each cut loses something, and keep these states."""
    options = {"when": ["uniform"], "keep": "all", "duration": "3s"}
    run(folder, f"again-{seed}", study("cuts that damage", STACK, cuts=cuts, seed=seed, **options))


def same(folder, most):
    """Examine kept states of all runs in the folder again, ``most`` at most; return how often that gave the same."""
    states = [path.parent for path in sorted(folder.glob("*/trials/*/cuts/*/about.json"))]
    states = states[:: max(1, len(states) // most)][:most] if states else []
    outcomes, plans, others = Counter(), {}, []
    tally = {"outcome": 0, "counts": 0}
    with contextlib.closing(Journal("benches.crash")) as journal:
        for state in states:
            kept, name = read_kept(state), state.relative_to(folder).parts[0]
            if name not in plans:
                plans[name] = make_plan(load_study(folder / f"{name}.toml"))
            outcomes[kept.cut.outcome] += 1
            for _ in range(TIMES):
                cut = examine_kept(state, plans[name].specs[kept.treatment], journal)
                tally["outcome"] += cut.outcome == kept.cut.outcome
                tally["counts"] += counts(cut) == counts(kept.cut)
                if (cut.outcome, counts(cut)) != (kept.cut.outcome, counts(kept.cut)):
                    others.append({"state": str(state.relative_to(folder)), "was": vars(kept.cut), "is": vars(cut)})
    return {"states": len(states), "examined": TIMES * len(states), "outcomes": outcomes, "others": others, **tally}


def counts(cut):
    """Return what of a cut is to be the same."""
    return tuple(getattr(cut, name) for name in COUNTS)
