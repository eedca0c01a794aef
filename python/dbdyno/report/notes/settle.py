"""What came between two trials so that the one leaves less for the other, in words."""

from dbdyno.model.design import Design, Settle


def settle_words(settle: Settle) -> str:
    """Return it as a study writes it: ``"30 s"``, ``"trial"``; nothing where nothing came between."""
    return settle if settle == "trial" else f"{settle:g} s" if settle else ""


def settle_lines(design: Design) -> list[str]:
    """Return what every trial came after; nothing where nothing came between."""
    if not design.settle:
        return []
    if design.settle == "trial":
        baseline = next(one.label for one in design.treatments if one.id == design.baseline)
        return [f"Before each trial {baseline} ran once, unmeasured: whatever a trial leaves, all came after the same."]
    return [f"Each trial rested {settle_words(design.settle)} between the raising of its stack and its load."]
