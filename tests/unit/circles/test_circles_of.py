"""Circles of a graph, whatever its shape."""

import pytest

from scripts.circles import circles_of


@pytest.mark.parametrize(
    ("edges", "circles"),
    [
        ({}, []),
        ({"a": [], "b": []}, []),
        ({"a": ["b"], "b": [], "c": ["a"]}, []),
        ({"a": ["b"], "b": ["a"], "c": ["a"]}, [["a", "b"]]),
    ],
)
def test_circles_of_a_graph_with_and_without_edges(edges, circles):
    assert circles_of(edges) == circles
