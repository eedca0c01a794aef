"""Circles of a graph, whatever its shape; those of Rust modules are found, and there are none here."""

from pathlib import Path

import pytest

from scripts.circles import circles_of, rust


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


# Circles of Rust modules are found, and there are none here.


ROOT = Path(__file__).parents[2]


def crate(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / "crates/one/src" / f"{name.replace('__', '/')}.rs"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_two_modules_that_use_each_other_are_a_circle(tmp_path: Path) -> None:
    root = crate(
        tmp_path,
        lib="mod a;\nmod b;\nmod c;",
        a="use std::fmt;\nuse crate::{b::{self, B}, c};",
        b='use super::c::C; // crate::a\nfn f() { crate::d::g("crate::a") }',
        c="fn g() { super::a::f() }\n#[cfg(test)]\nmod tests {\n    use crate::b;\n}",
        d="",
    )
    assert rust.circles(root) == [["crates/one/src/a.rs", "crates/one/src/b.rs", "crates/one/src/c.rs"]]


def test_a_child_may_use_its_parent_but_not_both_ways(tmp_path: Path) -> None:
    root = crate(tmp_path, lib="", a__mod="mod child;", a__child="use super::Parent;")
    assert rust.circles(root) == []
    crate(root, a__mod="mod child;\nfn f() -> child::Kind {}")
    assert rust.circles(root) == [["crates/one/src/a/child.rs", "crates/one/src/a/mod.rs"]]


def test_tests_do_not_count(tmp_path: Path) -> None:
    root = crate(tmp_path, a='use crate::b;\n#[cfg(test)]\n#[path = "a_tests.rs"]\nmod tests;', a_tests="use crate::b;")
    crate(root, b="#[cfg(test)]\nmod tests {\n    use crate::a;\n}")
    assert rust.circles(root) == []


def test_no_module_here_is_in_a_circle() -> None:
    assert rust.circles(ROOT) == []
