"""Which rule stops a run: that of the study, of the command line, or of a run that is resumed.

When it stops a run says ``analysis.stopping``; when a budget does, ``run.stop``.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from dbdyno.errors import UserError
from dbdyno.model.design import Design, Until
from dbdyno.study.defaults import DEFAULT_MAX_BLOCKS
from dbdyno.study.schema import MAX_BLOCKS
from dbdyno.study.study import Study


@dataclass(frozen=True)
class StopRule:
    """The part of a design that says when measuring stops; see ``Design``."""

    until: Until
    blocks: int  # at most, where ``until`` is another than "blocks"
    half_width: float | None = None
    budget_seconds: float | None = None

    @classmethod
    def of_study(cls, study: Study) -> "StopRule":
        """What the study says; without a word of it, until all is decided. Cuts that are to be examined fix it."""
        section = study.design
        if study.crash is not None:
            return cls("blocks", study.crash.blocks, None, section.budget)
        if section.blocks is not None:
            return cls("blocks", section.blocks, None, section.budget)
        blocks = section.max_blocks or DEFAULT_MAX_BLOCKS
        return cls(section.until or "decided", blocks, section.half_width, section.budget)

    @classmethod
    def of_run(cls, design: Design) -> "StopRule":
        """What a run was begun with."""
        return cls(design.until, design.blocks, design.half_width, design.budget_seconds)


@dataclass(frozen=True)
class StopOptions:
    """What the command line gives about when to stop."""

    blocks: int | None = None
    max_blocks: int | None = None
    budget_seconds: float | None = None
    until_decided: bool = False

    def check(self) -> None:
        """Raise ``UserError`` where it contradicts itself."""
        if self.blocks is not None and (self.max_blocks is not None or self.until_decided):
            other = "--until-decided" if self.until_decided else "--max-blocks"
            raise UserError(f"--blocks fixes the number of blocks, {other} lets the data decide; give one")

    def override(self, study_rule: StopRule) -> StopRule:
        """What a new run is to do where the study says ``study_rule``."""
        self.check()
        if self.blocks is not None:
            study_rule = StopRule("blocks", self.blocks, None, study_rule.budget_seconds)
        elif self.until_decided:
            study_rule = StopRule("open", self.max_blocks or MAX_BLOCKS, None, study_rule.budget_seconds)
        elif self.max_blocks is not None:
            study_rule = replace(
                study_rule,
                until="decided" if study_rule.until == "blocks" else study_rule.until,
                blocks=self.max_blocks,
            )
        return study_rule if self.budget_seconds is None else replace(study_rule, budget_seconds=self.budget_seconds)

    def for_resume(self, earlier: StopRule, into: Path) -> StopRule:
        """What a run that was begun with ``earlier`` is to do. Raises ``UserError`` where that would change its plan.

        Only the always-valid sequence allows to go on for whatever the results look like; its time counts anew.
        """
        self.check()
        if self.until_decided:
            return StopRule("open", self.max_blocks or MAX_BLOCKS, None, self.budget_seconds)
        if self.override(earlier) != earlier:
            raise UserError(
                f"{into} was begun with another plan of when to stop, and a run keeps it: go on without --blocks, "
                "--max-blocks and --budget, or with --until-decided, which goes beyond any plan"
            )
        return earlier
