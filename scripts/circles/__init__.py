"""Circles of files: files that need each other, straight or by way of others, and so can only be read together."""

from collections.abc import Iterable, Mapping

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components


def circles_of(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the files of each circle, sorted, of a graph given as file -> the files that it needs."""
    files = sorted(edges)
    number = {file: index for index, file in enumerate(files)}
    pairs = np.array([(number[file], number[needed]) for file in files for needed in edges[file]], int).reshape(-1, 2)
    graph = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(files), len(files)))
    _, labels = connected_components(graph.tocsr(), connection="strong")
    groups: dict[int, list[str]] = {}
    for file in files:
        groups.setdefault(labels[number[file]], []).append(file)
    return sorted(group for group in groups.values() if len(group) > 1)
