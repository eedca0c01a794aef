"""A reader of the documents who does what they say: blocks by language, commands as they stand, in a scratch folder.

A block that nobody can run here has ``<!-- not run: REASON -->`` on the line before it.
"""

import functools
import re
import shlex
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import tomli_w
from typer.main import get_command

from dbdyno.cli.main import app, every_command
from dbdyno.stack.tools import own_binary

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "METHODOLOGY.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = {"toml", "sh", "console", "python", "sql", "text", "dockerfile", "yaml"}
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>.+?) -->\n)?^```(?P<language>\S*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
TOOLS = {"mkfs.ext4", "openssl"}  # programs of others that a page may call; tests of what they are for run them
LOAD_VERBS = {"slap", "smack", "oltp", "tpcc", "ledger", "ingest", "bulk", "script", "replay-log"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str  # why nobody runs it; empty where the tests do

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command, without sudo and the path of dbdyno; what it printed is left out."""
        text = self.text.replace("\\\n", " ")
        lines = text.splitlines()
        if self.language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        found = [shlex.split(line.partition(" | ")[0], comments=True) for line in lines]
        return [[word.removeprefix(".venv/bin/") for word in words if word != "sudo"] for words in found if words]

    @property
    def file(self) -> str:
        """What a TOML or SQL block is to be saved as: its first comment, if that is a file's name."""
        named = re.match(r"(?:#|--) ([\w.-]+\.(?:toml|sql))$", self.text.partition("\n")[0])
        return named[1] if named else ""


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, at.start("text")), at["language"], at["text"], at["reason"] or "")
        for at in _BLOCK.finditer(text)
    ]


def understood(argv: list[str]) -> None:
    """Raise where the command line does not take these words; nothing is run."""
    command, context, words = get_command(app), None, argv
    while True:
        name = command.name or "dbdyno"
        context = command.make_context(name, list(words), parent=context)
        if not hasattr(command, "resolve_command"):
            return
        rest = [*context._protected_args, *context.args]
        if not rest:
            return
        _, command, words = command.resolve_command(context, rest)


def unknown_words(argv: list[str]) -> list[str]:
    """The words that are no command, or the flags that a command does not have; a name in capitals may be any verb."""
    command = first = every_command()
    rest = list(argv)
    while rest and getattr(command, "commands", None) and not rest[0].startswith("-"):
        word = rest.pop(0)
        if word not in command.commands:
            known = word.isupper() or word == "..." or (command is not first and command.invoke_without_command)
            return [] if known else [word]
        command = command.commands[word]
    given = {word.partition("=")[0] for word in rest if re.match(r"--\w", word)} - {"--help"}
    if command.name in LOAD_VERBS:
        return sorted(flag for flag in given if not re.search(rf"{flag}(?![\w-])", load_help(command.name)))
    return sorted(given - {option for one in command.params for option in (*one.opts, *one.secondary_opts)})


@functools.cache
def load_help(verb: str) -> str:
    """What the load generator says of a verb's flags."""
    argv = [own_binary("dbdyno-load"), verb, "--help"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def merged(base: dict, part: dict) -> dict:
    """A part of a study put into a whole one; a load of its own takes the place of that one's, and of its server."""
    whole = dict(base)
    if "kind" in part.get("workload", {}):
        whole |= {"workload": {}, "server": {}}
    for name, value in part.items():
        inside = isinstance(value, dict) and isinstance(whole.get(name), dict)
        whole[name] = merged(whole[name], value) if inside else value
    return whole


SMALL = {"rows": 2000, "table_size": 1000, "tables": 2, "initial_rows": 100, "clients": 2}
CUTS = 3  # of each treatment in a block


def shrunk(text: str, blocks: int) -> str:
    """The study with two treatments, so many blocks, little data and a moment of load, so that it runs in seconds."""
    study = tomllib.loads(text)
    varied = 0
    for section in ("stack", "queue", "filesystem", "server", "workload"):
        for table in (study.get(section, {}), study.get(section, {}).get("settings", {})):
            for name, value in table.items():
                if isinstance(value, list):
                    varied += 1
                    table[name] = [value[0], value[-1]] if varied == 1 else value[0]
    workload = study["workload"]
    for name, most in SMALL.items():
        if name in workload and not isinstance(workload[name], list):
            workload[name] = min(workload[name], most)
    for name in ("queries", "events", "rows") if workload["kind"] != "smack" else ("queries", "events"):
        workload.pop(name, None)
    if workload["kind"] != "bulk":
        workload |= {"duration": "500ms", "warmup": "0s"}
    if "size" in study["stack"] and "kernel" not in study["stack"]:  # a simulated device takes no room
        study["stack"]["size"] = "512MiB"
    _measured_for_a_moment(study, blocks)
    study.pop("scale", None)
    study.pop("reported", None)
    return tomli_w.dumps(study)


def _measured_for_a_moment(study: dict, blocks: int) -> None:
    """Have the study measure so many blocks; those of a crash study follow from its cuts."""
    kept = ("compare", "margin", "seed", "metric", "secondary_metrics")
    given = study.get("design", {})
    design = {name: given[name] for name in kept if name in given} | {"interference": "note"}
    if "crash" in study:
        study["crash"] |= {"cuts": CUTS * blocks, "cuts_per_run": CUTS}
    else:
        design["blocks"] = blocks
    study["design"] = design
