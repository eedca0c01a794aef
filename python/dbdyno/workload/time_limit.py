"""How long a load may run before it is taken for stuck."""

from dbdyno.study.section import WorkloadSection

# After its own time a load may still have to wait for a slow disk; an hour later it is stuck rather than slow.
GRACE_SECONDS = 3600.0
# What is bounded by an amount takes as long as it takes; after a day it is stuck too.
DAY_SECONDS = 86_400.0


def limit_seconds(section: WorkloadSection) -> float:
    """Its own time and an hour, or a day."""
    bound = section.seconds_bound
    return DAY_SECONDS if bound is None else GRACE_SECONDS + section.seconds_before + bound
