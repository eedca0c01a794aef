"""The rig that plays what it is told."""

from tests.unit.crash.rig import played, rig

__all__ = ["played", "rig"]
