"""What can't be combined in ``[design]`` about when measuring stops."""

from collections.abc import Iterator

from dbdyno.study.mistakes import Mistake
from dbdyno.study.schema import DesignSection


def broken_design_rules(design: DesignSection) -> Iterator[Mistake]:
    """Every rule that this section breaks."""
    if design.blocks is not None:
        for name in ("until", "max_blocks"):
            if getattr(design, name) is not None:
                text = "can't be given with blocks, which fixes their number; leave out one of the two"
                yield Mistake(("design", name), text)
    if design.until == "precise" and design.half_width is None:
        yield Mistake(("design", "half_width"), 'is missing; until = "precise" needs it, such as "2%"')
    if design.until != "precise" and design.half_width is not None:
        yield Mistake(("design", "half_width"), 'is for until = "precise"; add that, or leave half_width out')
