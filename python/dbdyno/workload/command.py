"""The workload ``command``: any program, and how to read its figure."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbdyno.errors import TrialError
from dbdyno.stack.layer import StackContext
from dbdyno.study.workloads import CommandSection
from dbdyno.system.files import file_sha256
from dbdyno.workload.tool_load import ByTool, Program, ToolLoad, client_cpu, run_program


@dataclass(frozen=True)
class UsersProgram(Program):
    """A program of the user's own: which one it is, its content says; it is not asked."""

    @property
    def name(self) -> str:
        """Its file's name; where it lay is private."""
        return Path(self.names[0]).name

    def version(self) -> str:
        """The beginning of its SHA-256."""
        path = self.find_path()
        return f"sha256 {file_sha256(Path(path))[:16]}" if path else "unknown"


@dataclass(frozen=True)
class Command(ByTool[CommandSection]):
    """The command of one treatment."""

    @property
    def tool(self) -> Program:
        """The program."""
        return UsersProgram((self.section.words[0],), "")

    @property
    def limit_seconds(self) -> float:
        """The study's."""
        return self.section.time_limit

    def run(self, context: StackContext, seed: int, folder: Path) -> ToolLoad:
        """Run it once, in its folder. Raises ``TrialError`` with its own words, or if it prints no figure."""
        assert context.files is not None  # noqa: S101  (a command has them)
        argv = [str(self.program()), *self.section.words[1:]]
        ended = run_program(
            context,
            self.tool.name,
            argv,
            folder=folder,
            limit_seconds=self.limit_seconds,
            cwd=context.files,
            environment=environment(context, seed),
        )
        window = (ended.start_ns, ended.end_ns)
        figures = {"seconds_real": (window[1] - window[0]) / 1e9, **client_cpu(ended)}
        if self.section.figure:
            figures[self.section.metric] = figure_in(ended.stdout, self.section.figure)
        return ToolLoad(reported={"kind": "command"}, window_ns=window, figures=figures)


def environment(context: StackContext, seed: int) -> dict[str, str]:
    """What a command is given: its folder, the seed, and how to reach the server if there is one."""
    variables = {"DBDYNO_DIRECTORY": str(context.files), "DBDYNO_SEED": str(seed), "HOME": str(context.files)}
    if context.endpoint is None:
        return variables
    address = context.endpoint.address
    return variables | {"DBDYNO_SOCKET": str(address.socket), "DBDYNO_USER": address.user}


def figure_in(text: str, how: str) -> float:
    """The figure that a program printed: the last match of a regular expression, or a path in JSON.

    Raises ``TrialError`` where there is none.
    """
    try:
        value = _at_path(json.loads(text), how) if how.startswith("$.") else re.findall(how, text, re.MULTILINE)[-1]
        if isinstance(value, bool):
            raise TypeError  # noqa: TRY301  (true is no number, whatever Python says)
        return float(value)
    except (ValueError, TypeError, KeyError, IndexError):
        last_lines = " / ".join(text.strip().splitlines()[-3:])[:200]
        raise TrialError(
            f"workload.figure: {how} finds no number in what the command printed: {last_lines!r}"
        ) from None


def _at_path(value: Any, path: str) -> Any:  # noqa: ANN401  (whatever JSON can hold)
    for name, index in re.findall(r"\.([A-Za-z_][\w-]*)|\[([0-9]+)\]", path):
        if name and isinstance(value, dict):
            value = value[name]
        elif index and isinstance(value, list):
            value = value[int(index)]
        else:
            raise KeyError(path)
    return value
