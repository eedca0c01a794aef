"""A run whose trials are played: journal, run folder, plan and signals are the real ones."""

from types import SimpleNamespace

from dbdyno.resume import open_run
from dbdyno.runner import run_all
from dbdyno.store.records import Trial

DISTURBANCE = {"beyond": ["foreign_cpu"], "foreign_cpu": 0.5, "limits": {"foreign_cpu": 0.06}, "others": {"cc": 1.0}}


class Script:
    """Stands for the trials: each succeeds, but for those that ``fails`` names."""

    def __init__(self):
        self.fails, self.ran, self.seeds, self.said, self.left, self.at_exit = {}, [], {}, [], [], None
        self.rate = lambda _block, _treatment: 100.0  # queries per second
        self.trial_seconds = {"raise": 0.0}
        self.disturbed = set()  # of (block, attempt, treatment)

    def run_trial(self, slot, spec, image, *, seed, folder, journal, erase):  # noqa: PLR0913
        assert image == spec.stack.device
        assert (journal.path.exists(), erase) == (True, frozenset({"S1"}))
        self.left += list(folder.iterdir())
        (folder / "latency.hlog").write_text("raw")
        self.ran.append(slot)
        self.seeds[slot.block, slot.treatment] = seed
        failure = self.fails.get((slot.block, slot.attempt, slot.treatment)) or self.fails.get(
            (slot.block, slot.treatment)
        )
        if callable(failure):
            failure()
        elif failure:
            raise failure
        metrics = {"seconds_real": 1.0, "queries_per_second": self.rate(slot.block, slot.treatment)}
        place = slot.id, slot.block, slot.attempt, slot.position, slot.treatment
        disturbance = DISTURBANCE if (slot.block, slot.attempt, slot.treatment) in self.disturbed else {}
        trial = Trial(*place, "now", metrics, seconds=self.trial_seconds, disturbance=disturbance)
        return SimpleNamespace(trial=trial, series={})

    # Images and Progress, as far as the runner sees them.

    def images(self, _journal, _erase, _say, *, fresh):
        assert not fresh
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.at_exit:
            self.at_exit()

    def of(self, spec):
        return spec.stack.device

    def say(self, text):
        self.said.append(text)

    def trial(self, slot, label, done, outlook):
        self.said.append((slot.id, label, done, outlook))

    def trial_done(self, seconds):
        pass


def perform(script, plan, into, *, resume=False):
    folder = open_run(plan, into, resume=resume, versions={"dbdyno": "0"}, host={"cores": 2})
    try:
        return run_all(plan, folder, script, frozenset({"S1"}))
    finally:
        folder.close()
