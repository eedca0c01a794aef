"""Circles among the modules of dbdyno, imports inside functions included."""

from pathlib import Path

import grimp

from scripts.circles import circles_of


def circles(_root: Path) -> list[list[str]]:
    """Return the modules of each circle. A package's ``__init__`` is one module, not the sum of what lies below it."""
    graph = grimp.build_graph("dbdyno")
    return circles_of({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})
