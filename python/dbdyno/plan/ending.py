"""When measuring stops: what the study says of it, what the command line overrules, what a run goes on with."""

from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.store.records import Design, Until
from dbdyno.study.schema import MAX_BLOCKS, DesignSection

DEFAULT_MAX_BLOCKS = 40


@dataclass(frozen=True)
class Ending:
    """The part of a design that says when measuring stops; see ``Design``."""

    until: Until
    blocks: int  # at most, where ``until`` is another than "blocks"
    half_width: float | None = None
    budget_seconds: float | None = None

    @classmethod
    def of_study(cls, section: DesignSection) -> "Ending":
        """What the study says; without a word of it, until all is decided."""
        if section.blocks is not None:
            return cls("blocks", section.blocks, None, section.budget)
        blocks = section.max_blocks or DEFAULT_MAX_BLOCKS
        return cls(section.until or "decided", blocks, section.half_width, section.budget)

    @classmethod
    def of_run(cls, design: Design) -> "Ending":
        """What a run was begun with."""
        return cls(design.until, design.blocks, design.half_width, design.budget_seconds)


@dataclass(frozen=True)
class Asked:
    """What the command line asks for."""

    blocks: int | None = None
    max_blocks: int | None = None
    budget_seconds: float | None = None
    until_decided: bool = False

    def check(self) -> None:
        """Raise ``UserError`` where it contradicts itself."""
        if self.blocks is not None and (self.max_blocks is not None or self.until_decided):
            other = "--until-decided" if self.until_decided else "--max-blocks"
            raise UserError(f"--blocks fixes the number of blocks beforehand, {other} lets the data decide; give one")

    def overruling(self, said: Ending) -> Ending:
        """What a new run is to do where the study says ``said``."""
        self.check()
        if self.blocks is not None:
            said = Ending("blocks", self.blocks, None, said.budget_seconds)
        elif self.until_decided:
            said = Ending("open", self.max_blocks or MAX_BLOCKS, None, said.budget_seconds)
        elif self.max_blocks is not None:
            said = replace(said, until="decided" if said.until == "blocks" else said.until, blocks=self.max_blocks)
        return said if self.budget_seconds is None else replace(said, budget_seconds=self.budget_seconds)

    def going_on(self, held: Ending, into: Path) -> Ending:
        """What a run that was begun with ``held`` is to do. Raises ``UserError`` where that would change its plan.

        Only the always-valid sequence allows to go on for whatever the results look like; its time counts anew.
        """
        self.check()
        if self.until_decided:
            return Ending("open", self.max_blocks or MAX_BLOCKS, None, self.budget_seconds)
        if self.overruling(held) != held:
            raise UserError(
                f"{into} was begun with another plan of when to stop, and that is not changed under way: go on without "
                "--blocks, --max-blocks and --budget, or with --until-decided, which allows to go on beyond any plan"
            )
        return held
