"""A combination of factor levels, and what it is called."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Treatment:
    """One combination of factor levels, e.g. ``{"device": "hdd-7200", "scheduler": "none"}``."""

    id: str  # "t1", "t2", ... in the order of the study file
    levels: dict[str, str]  # factor name -> level as written in the study; empty if the study has no factor

    @property
    def label(self) -> str:
        """Levels joined for display, e.g. ``"hdd-7200 / none / clients 10"``: what is no word goes by its factor."""
        return " / ".join(level_label(*each) for each in self.levels.items()) or "as written"


def level_label(factor: str, level: str) -> str:
    """Return a level, with its factor's name where it can't stand without: ``"ext4"``, ``"clients 10"``."""
    return level if level[:1].isalpha() and level not in {"true", "false"} else f"{factor} {level}"
