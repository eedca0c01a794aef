"""A stack is lowered top first, whatever fails."""

from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from dbdyno.errors import TrialError
from dbdyno.stack.layer import StackContext, raised


@dataclass(frozen=True)
class Traced:
    """A layer that says when it is raised and lowered, and fails where it is told to."""

    name: str
    trace: list
    fails: str = ""

    @contextmanager
    def raised(self, below):
        self.trace.append(f"+{self.name}")
        if self.fails == "up":
            raise TrialError(self.name)
        try:
            yield below.raised(self.name, {"on": list(below.observed)})
        finally:
            self.trace.append(f"-{self.name}")
            if self.fails == "down":
                raise TrialError(self.name)


@pytest.mark.parametrize(
    ("fails", "trace"),
    [
        ({}, "+a +b +c use -c -b -a"),
        ({"b": "up"}, "+a +b -a"),
        ({"c": "down"}, "+a +b +c use -c -b -a"),
        ({"a": "down", "c": "down"}, "+a +b +c use -c -b -a"),
    ],
)
def test_a_stack_is_lowered_top_first_whatever_fails(tmp_path, fails, trace):
    seen = []

    def use():
        with raised([Traced(name, seen, fails.get(name, "")) for name in "abc"], StackContext(None, tmp_path)) as top:
            assert top.observed == {"a": {"on": []}, "b": {"on": ["a"]}, "c": {"on": ["a", "b"]}}
            seen.append("use")

    if fails:
        with pytest.raises(TrialError):
            use()
    else:
        use()
    assert " ".join(seen) == trace
