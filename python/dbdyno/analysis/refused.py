"""What can't be compared or ranked, as a code and values; ``report/several.py`` has a sentence for each."""

from typing import Any, Literal

from dbdyno.errors import UserError

Code = Literal[
    "other metric",
    "other load",
    "other margin",
    "nothing in common",
    "named twice",
    "no such pair",
    "no such control",
    "control alone",
    "metrics of runs",
    "too few stacks",
    "no such baseline",
    "no cuts",
    "other treatments",
]


class RefusedError(UserError):
    """The runs can't answer what was asked; ``given`` is what a sentence about it needs."""

    def __init__(self, code: Code, **given: Any) -> None:  # noqa: ANN401 - labels, figures, lists of them
        super().__init__(code, given)
        self.code, self.given = code, given
