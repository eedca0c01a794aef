"""What a number of cuts can show before the first of them is taken."""

from collections.abc import Iterator

from dbdyno.study.crash_section import CrashSection

ERROR = 0.05  # of a one-sided bound: it holds with 95 %
TELLING = 0.05  # a bound above this says nothing that anybody would rely on
FEW_TRIALS = 5  # fewer can't be resampled
CUT_SECONDS = 1.0  # what examining one takes on ext4 with InnoDB: a guess until the first block has been measured


def bound_of_none(cuts: int) -> float:
    """Return the share of cuts that may lose although none of ``cuts`` did: the exact (Clopper-Pearson) 95 % bound."""
    return float(1 - ERROR ** (1 / cuts))


def cuts_for(bound: float) -> int:
    """Return the fewest cuts of which none may lose for the exact 95 % bound to be at most ``bound`` (0 to 1)."""
    cuts = 1
    while bound_of_none(cuts) > bound:
        cuts += 1
    return cuts


def planned_cuts(crash: CrashSection, blocks: int) -> int:
    """Return the cuts of each treatment in so many blocks: every trial takes as many."""
    return blocks * crash.cuts_each


def crash_warnings(crash: CrashSection, blocks: int) -> Iterator[str]:
    """Yield what can be foreseen of the answer: cuts or trials that are too few for one."""
    cuts = planned_cuts(crash, blocks)
    each = cuts // len(crash.strata)
    if (bound := bound_of_none(cuts)) > TELLING:
        yield (
            f"{cuts} cuts of each treatment are too few to call anything safe: if none loses, up to "
            f"{100 * bound:.3g} % of such cuts still may; give crash.cuts = {cuts_for(TELLING)} or more"
        )
    elif each < cuts_for(TELLING):
        bound = bound_of_none(each) if each else 1.0
        yield (
            f"of each of the {len(crash.strata)} kinds of cut there are about {each}, which alone show at best "
            f"{100 * bound:.3g} %; give crash.cuts = {cuts_for(TELLING) * len(crash.strata)} for a bound of 5 % to each"
        )
    if blocks < FEW_TRIALS:
        yield (
            f"all cuts of a treatment are of {blocks} trial{'s' * (blocks != 1)}, and cuts of one trial are alike: "
            "give less crash.cuts_per_run, or more crash.cuts"
        )
