"""What fio's job files say: their lines, and sizes and times in fio's own units (fio(1), "Parameter types")."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dbdyno.model.printable import SECRET_NAME
from dbdyno.model.quantity import DURATION_LIMIT_SECONDS, SIZE_LIMIT_BYTES

KB_BASES = (1024, 1000)  # 1024 is fio's own: a k is 1024 bytes and a Ki 1000; under 1000 they are the other way round
SECONDS = {
    "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "sec": 1.0,
    "ms": 1e-3, "msec": 1e-3, "us": 1e-6, "usec": 1e-6,
}  # fmt: skip
SPLITS_MOST = 64  # sizes of a bssplit
_DIGITS_MOST = 20
_SIZE = re.compile(rf"(0x[0-9a-f]{{1,16}}|[0-9]{{1,{_DIGITS_MOST}}}(?:\.[0-9]{{1,{_DIGITS_MOST}}})?)([kmgtp]i?)?b?")
_TIME = re.compile(rf"([0-9]{{1,{_DIGITS_MOST}}}(?:\.[0-9]{{1,{_DIGITS_MOST}}})?)([a-z]*)")
_PERCENT = re.compile(r"([0-9]{1,3})%")


@dataclass(frozen=True)
class JobLine:
    """A line of a job file: the head of a section, which has no word, or an option in one."""

    number: int  # from 1
    section: str | None  # None: it stands before the first section
    word: str
    value: str
    file: str = ""  # that was included, and holds the line

    @property
    def where(self) -> str:
        """The line in words."""
        return f"{self.file} line {self.number}" if self.file else f"line {self.number}"


def job_lines(text: str, section: str | None = None, file: str = "") -> Iterator[JobLine]:
    """Yield the lines that say something; a word without a value has an empty one.

    ``include`` is such a word, too, and its value the file. A command line (``fio --name=a --rw=read``) is read as the
    job file that says the same. ``section`` and ``file`` are those of the line that includes this text.
    """
    text = text.removeprefix("\ufeff")  # that some editors put before all text
    if _COMMAND.match(text):
        yield from _command_lines(text)
        return
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.startswith("["):
            section = line[: line.rindex("]")].lstrip("[").strip() if "]" in line else line.strip("[").strip()
            yield JobLine(number, section, "", "", file)
            continue
        line = re.split("[;#]", line, maxsplit=1)[0].strip()  # fio cuts off a comment wherever it stands
        if not line:
            continue
        word, _, value = line.partition("=")
        if line.split()[0] == "include" and not value:
            word, value = "include", line.removeprefix("include")
        yield JobLine(number, section, word.strip().lower(), value.strip(), file)


_BEFORE_A_COMMAND = r"(?:\$ |sudo (?:-E )?|time |\w+=\S+ )*(?:\S*/)?"
_COMMAND = re.compile(rf"(?:[ \t]*(?:#.*)?\r?\n)*[ \t]*{_BEFORE_A_COMMAND}fio[ \t]+(?:\\\r?\n|[ \t])*--?[a-z]")
_COMMAND_BEGINS = re.compile(rf"[ \t]*{_BEFORE_A_COMMAND}fio[ \t\\]")
_SHELL = frozenset({";", "&&", "||", "|", "&", ">", ">>", "<"})  # words behind which a shell has another command


def _command_lines(text: str) -> Iterator[JobLine]:
    """Yield what the options of fio's command line say: those before the first ``--name`` are of all jobs.

    Each line is numbered as the file has it; a backslash at its end goes on with the next.
    """
    section = "global"
    yield JobLine(1, section, "", "")
    commands, goes_on = 0, False
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not goes_on:
            commands += bool(_COMMAND_BEGINS.match(line))
        if commands > 1:
            raise ValueError(f"line {number}: is a second command; give each a file of its own")
        goes_on = line.endswith("\\")
        words, is_whole = _shell_words(line.removesuffix("\\"))
        goes_on &= is_whole
        for at, argument in enumerate(words):
            if not re.match("--?[a-z]", argument):
                continue
            word, equals, value = argument.lstrip("-").partition("=")
            if not equals and at + 1 < len(words) and not words[at + 1].startswith("-"):
                value = words[at + 1]
            word = word.lower().replace("-", "_")
            if word == "name":
                section = value or "job"
                yield JobLine(number, section, "", "")
            elif word not in _OF_THE_COMMAND:
                yield JobLine(number, section, word, value)


def _shell_words(line: str) -> tuple[list[str], bool]:
    """Return the words of a line up to where a shell has another command, and whether it has none."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a quote that is not closed
        words = line.split()
    end = next((at for at, word in enumerate(words) if word in _SHELL), len(words))
    return words[:end], end == len(words)


# Options of fio's command line that say how it prints, and nothing of a job.
_OF_THE_COMMAND = frozenset(
    """output output_format status_interval eta eta_newline minimal append_terse terse_version bandwidth_log parse_only
    showcmd max_jobs debug warnings_fatal""".split()  # noqa: SIM905
)


_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w{0,63})\}|\$(pagesize|mb_memory|ncpus)\b")
_VARIABLE_VALUE = re.compile(r"[\w .,:/%+@\\-]{0,200}")


def variables_in(value: str) -> list[str]:
    """Return the names of the variables that a value holds."""
    return [match[1] or match[2] for match in _VARIABLE.finditer(value)]


def with_variables(value: str, variables: Mapping[str, str]) -> str:
    """Return a value with what stands for ``${NAME}`` and fio's own ``$ncpus`` and so on.

    Raises ``ValueError`` with the variable that is not set, is secret by its name, or holds what would be read as more
    than a value.
    """

    def value_of(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in variables:
            raise ValueError(f"holds ${{{name}}}, which is not set; set it, such as {name}=... before the command")
        if SECRET_NAME.search(name.lower()):
            raise ValueError(f"holds ${{{name}}}, a secret by its name, which a run would keep; give it another name")
        if not _VARIABLE_VALUE.fullmatch(variables[name]):
            raise ValueError(
                f"holds ${{{name}}}, whose value is not a plain word; set it to the value that fio should read"
            )
        return variables[name]

    return _VARIABLE.sub(value_of, value)


def with_values(text: str, values: Mapping[str, str]) -> str:
    """Return a text with the values of the environment's variables in it; fio's own are of the host that runs it."""
    return _VARIABLE.sub(lambda match: match[0] if match[2] else values.get(match[1], match[0]), text)


def is_job_file(head: bytes) -> bool:
    """Whether a file begins as fio's job files do: with a section, or as a command line of fio's."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    if _COMMAND.match(head[:4096].decode(errors="replace")):
        return True
    lines = (line.strip() for line in head.splitlines())
    return next((line.startswith(b"[") for line in lines if line and line[:1] not in b"#;"), False)


def fio_bytes(text: str, kb_base: int = KB_BASES[0]) -> int:
    """Return the bytes of a size such as ``4k``, ``8GB``, ``1Mi`` or ``0x1000``. Raises ``ValueError``."""
    match = _SIZE.fullmatch(text.lower())
    if match is None:
        raise ValueError("is not a size of fio's; write a number and k, m, g, t or p, such as 4k")
    number, prefix = match.groups()
    is_binary = (kb_base == KB_BASES[0]) != (prefix or "").endswith("i")
    factor: int = (1024 if is_binary else 1000) ** (" kmgtp".index(prefix[0]) if prefix else 0)
    size = int(number, 16) * factor if number.startswith("0x") else round(float(number) * factor)
    if size >= SIZE_LIMIT_BYTES:
        raise ValueError("is too large; sizes are below 8 EiB")
    return size


def fio_percent(text: str) -> int | None:
    """Return the percentage that stands where a size may; None of a size. Raises ``ValueError`` over 100."""
    match = _PERCENT.fullmatch(text)
    if match and int(match[1]) > 100:  # noqa: PLR2004
        raise ValueError("is over 100 %")
    return int(match[1]) if match else None


def fio_seconds(text: str, unit: str = "s") -> float:
    """Return the seconds of a time such as ``30m``; ``unit`` is that of a bare number. Raises ``ValueError``."""
    match = _TIME.fullmatch(text.lower())
    if match is None or (match[2] or unit) not in SECONDS:
        raise ValueError(f"is not a time of fio's; write a number and one of {', '.join(SECONDS)}, such as 30m")
    seconds = float(match[1]) * SECONDS[match[2] or unit]
    if seconds > DURATION_LIMIT_SECONDS:
        raise ValueError("is too long; times are at most 1000000h")
    return seconds


def fio_sizes(text: str, kb_base: int = KB_BASES[0]) -> tuple[int, int]:
    """Return the sizes of reads and of writes of ``4k`` or ``4k,8k``; a third is that of trims. Raises ``ValueError``.

    One that is left out (``,8k``) is 4 KiB, and one that is missing at the end is as the one before.
    """
    read, write = _reads_and_writes(text)
    return fio_bytes(read or "4k", kb_base), fio_bytes(write or "4k", kb_base)


def fio_split(text: str, kb_base: int = KB_BASES[0]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the sizes of reads and of writes of a ``bssplit``, each with its percentage. Raises ``ValueError``.

    What entries leave of 100 is shared by those without a percentage.
    """
    read, write = (_shares(way, kb_base) for way in _reads_and_writes(text))
    return read, write


def fio_range(text: str, kb_base: int = KB_BASES[0]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the smallest and the largest size of reads and of writes of a ``bsrange``. Raises ``ValueError``."""

    def bounds(way: str) -> tuple[int, int]:
        least, dash, most = way.replace(":", "-", 1).partition("-")
        if not dash:
            raise ValueError("is not a range of sizes; write the smallest and the largest, such as 4k-64k")
        ends = sorted((fio_bytes(least.strip(), kb_base), fio_bytes(most.strip(), kb_base)))
        return ends[0], ends[1]

    read, write = _reads_and_writes(text)
    return bounds(read), bounds(write)


def _reads_and_writes(text: str) -> tuple[str, str]:
    """Return the parts of a value for reads and for writes."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 3:  # noqa: PLR2004 - reads, writes, trims
        raise ValueError("has more than three parts: of reads, writes and trims")
    return parts[0], parts[1] if len(parts) > 1 else parts[0]


def _shares(text: str, kb_base: int) -> list[tuple[int, int]]:
    entries = [entry.partition("/") for entry in text.split(":")]
    if len(entries) > SPLITS_MOST:
        raise ValueError(f"has more than {SPLITS_MOST} sizes, as many as fio takes")
    percentages = [int(percent) if percent.isdecimal() and len(percent) < 4 else None for _, _, percent in entries]  # noqa: PLR2004
    if any(percent and share is None for (_, _, percent), share in zip(entries, percentages, strict=True)):
        raise ValueError("has a share that is not a whole percentage; write it as fio does, such as 4k/60:16k/40")
    remainder = 100 - sum(share for share in percentages if share is not None)
    blank = percentages.count(None)
    if remainder < 0 or (not blank and remainder):
        raise ValueError(f"has shares of {100 - remainder} %; together they are 100 %")
    even, odd = divmod(remainder, blank) if blank else (0, 0)
    shares = []
    for (size, _, _), share in zip(entries, percentages, strict=True):
        extra = share is None and odd > 0
        odd -= extra
        shares.append((fio_bytes(size.strip(), kb_base), share if share is not None else even + extra))
    return [entry for entry in shares if entry[1]]
