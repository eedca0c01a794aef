"""What fio's job files say: their lines, and sizes and times in fio's own units (fio(1), "Parameter types")."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dbdyno.model.quantity import DURATION_LIMIT_SECONDS, SIZE_LIMIT_BYTES

KB_BASES = (1024, 1000)  # 1024 is fio's own: a k is 1024 bytes and a Ki 1000; under 1000 they are the other way round
SECONDS = {
    "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "sec": 1.0,
    "ms": 1e-3, "msec": 1e-3, "us": 1e-6, "usec": 1e-6,
}  # fmt: skip
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


def job_lines(text: str) -> Iterator[JobLine]:
    """Yield the lines that say something; a word without a value has an empty one."""
    section: str | None = None
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        # fio cuts off a comment at the end of a line only behind a blank.
        line = re.split(r"\s[#;]", line)[0].strip()
        if line.startswith("["):
            section = line.strip("[]").strip()
            yield JobLine(number, section, "", "")
            continue
        word, _, value = line.partition("=")
        yield JobLine(number, section, word.strip().lower(), value.strip())


def is_job_file(head: bytes) -> bool:
    """Whether a file begins as fio's job files do: with a section."""
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
    found = int(number, 16) * factor if number.startswith("0x") else round(float(number) * factor)
    if found >= SIZE_LIMIT_BYTES:
        raise ValueError("is too large; sizes are below 8 EiB")
    return found


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
