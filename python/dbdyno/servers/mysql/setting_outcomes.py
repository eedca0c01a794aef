"""What a server made of each setting that it was given: one comparison for the plan, for ``new`` and for every trial.

It is drawn from what ``SHOW GLOBAL VARIABLES`` says and from the error log, where a server notes what it changed, what
it could not have of the host, and what it does not know.
"""

import re
from collections.abc import Iterator, Mapping

from dbdyno.model.printable import short
from dbdyno.model.quantity import is_off, same_value
from dbdyno.mysql.my_cnf import FLAGS
from dbdyno.mysql.settings import Setting
from dbdyno.servers.contract import How, SettingOutcome

SAID_MAX = 300  # characters of a server's sentence
_NOTE = re.compile(r"\[(?:ERROR|Warning|System|Note)\] (?:\[MY-[0-9]+\] )?(?:\[\w+\] )?(.*)")
_PROGRAM = re.compile(r"^/?\S*(?:mysqld|mariadbd): ")
_BUFFERED = re.compile(r"^Buffered (?:warning|error|information): ")
# What the server says of a value that it replaced, and of the limit that may be the reason.
_REPLACED = re.compile(
    r"adjusted to|changed limits|wasn't recognized|out of range|too (?:large|small|big)|rounded", re.IGNORECASE
)
_FILES_LIMIT = re.compile(r"(?i)max_open_files|open_files_limit|Changed limits")
# Each takes descriptors, so that the limit of the process decides how much of it there can be.
_OPEN_FILES = frozenset({"innodb_open_files", "max_connections", "open_files_limit", "table_definition_cache",
                         "table_open_cache"})  # fmt: skip
# A mode that stands for several, which are shown beside it.
_MODES = frozenset({"ansi", "db2", "maxdb", "mssql", "mysql323", "mysql40", "oracle", "postgresql", "traditional"})
_ALL = frozenset({"all", "default", "*"})
_ENGINES = {"heap": "memory", "innobase": "innodb", "merge": "mrg_myisam"}
# What a server could not have of the host: the variable still shows what was asked for, the log says that it is not so.
_NOT_GRANTED = (
    ("large_pages", re.compile(r"(?i)HugeTLB|large_page_aligned_alloc|Using conventional memory pool")),
    ("innodb_flush_method", re.compile(r"(?i)Failed to set O_DIRECT on file")),
    ("innodb_numa_interleave", re.compile(r"(?i)Failed to set NUMA memory policy")),
    ("innodb_use_native_aio", re.compile(r"(?i)Native AIO (disabled|interface is not supported)|io_setup\(\) failed")),
    ("locked_in_memory", re.compile(r"(?i)Failed to lock memory")),
    ("innodb_compression_default", re.compile(r"(?i)Punch hole (is )?not supported")),
)
_PAGE_BYTES = re.compile(r"page size ([0-9]{1,15})")
# An error that names none of the variables that lead to it.
_MEANS = ((re.compile(r"(?i)encryption|keyring"), re.compile(r".*encrypt.*")),)


def setting_outcomes(
    settings: Mapping[str, Setting],
    variables: Mapping[str, str],
    log: str = "",
    choices: Mapping[str, tuple[str, ...]] | None = None,
) -> list[SettingOutcome]:
    """What a server that runs made of each setting; ``choices`` are the words of those variables that have a few."""
    lacking, lines = not_granted(variables, log), list(_lines(log))
    outcomes = []
    for name, value in settings.items():
        if name not in variables:
            outcomes.append(SettingOutcome(name, value, "unknown", said=_sentence_about(name, lines)))
            continue
        shown = variables[name]
        how = _how(name, value, shown, lines, (choices or {}).get(name, ()))
        sentence = ""
        if how in {"as asked", "another name"} and name in lacking and not is_off(str(value)):
            how, sentence = "not granted", lacking[name]
        elif how in {"adjusted", "limited"}:
            sentence = (
                next(filter(_FILES_LIMIT.search, lines), "") if how == "limited" else _sentence_about(name, lines)
            )
        outcomes.append(SettingOutcome(name, value, how, short(shown), short(sentence, SAID_MAX)))
    return outcomes


def not_granted(variables: Mapping[str, str], log: str) -> dict[str, str]:
    """What a server of the host asked for in vain though the variable is on, with the server's sentence."""
    sentences: dict[str, str] = {}
    for line in _lines(log):
        for name, pattern in _NOT_GRANTED:
            is_on = not is_off(variables.get(name, ""))
            if name not in sentences and is_on and pattern.search(line) and not _is_larger_page(line, variables):
                sentences[name] = short(line, SAID_MAX)
    return sentences


def refusal(log: str, settings: Mapping[str, Setting]) -> tuple[str, str]:
    """The setting that a server which would not start names, "" for none, and its sentence, "" where it left none."""
    errors = [line for line in _errors(log) if line != "Aborting"]
    for line in errors:
        if name := _named_in(line, settings):
            return name, short(line, SAID_MAX).rstrip(".")
    return "", short(errors[0], SAID_MAX).rstrip(".") if errors else ""


def _lines(log: str) -> Iterator[str]:
    """The sentences of an error log, without time, thread and program."""
    for line in log.splitlines():
        note = _NOTE.search(line)
        yield _BUFFERED.sub("", _PROGRAM.sub("", note[1] if note else line.strip()))


def _errors(log: str) -> Iterator[str]:
    """Those that say why it ended."""
    for line in log.splitlines():
        is_bare = _PROGRAM.match(line.strip()) and "[" not in line
        if "[ERROR]" in line or is_bare:
            yield from _lines(line)


def _named_in(line: str, settings: Mapping[str, Setting]) -> str:
    """The setting that a sentence is about: by its name, by what it is in words, by its value; "" for none."""
    text = line.lower().replace("-", "_")
    by_length = sorted(settings, key=len, reverse=True)
    for name in by_length:
        if re.search(rf"(?<![a-z0-9_]){name}(?![a-z0-9_])", text):
            return name
    for name in by_length:  # "page size" is innodb_page_size
        words = name.removeprefix("innodb_").replace("_", " ")
        if " " in words and re.search(rf"(?i)\b{words}\b", line):
            return name
    for reason, names in _MEANS:
        if reason.search(line) and (name := next(filter(names.fullmatch, settings), "")):
            return name
    values = {name: str(value) for name, value in settings.items() if isinstance(value, str)}
    return next((name for name, value in values.items() if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", line)), "")


def _sentence_about(name: str, lines: list[str]) -> str:
    """The first sentence that names a variable."""
    pattern = re.compile(rf"(?i)(?<![a-z0-9_]){name.replace('_', '[-_]')}(?![a-z0-9_])")
    return next(filter(pattern.search, lines), "")


def _how(name: str, value: Setting, shown: str, lines: list[str], choices: tuple[str, ...]) -> How:
    if same_value(value, shown):
        return "as asked"
    if name in FLAGS and _has_flags(str(value), shown):
        return "as asked"
    sentence = _sentence_about(name, lines)
    if not _REPLACED.search(sentence) and _is_another_name(name, value, shown, choices):
        return "another name"
    if name in _OPEN_FILES and (name == "open_files_limit" or any(map(_FILES_LIMIT.search, lines))):
        return "limited"
    return "adjusted"


def _has_flags(value: str, shown: str) -> bool:
    """Whether each flag that is asked for is shown so; the others are as they are by default."""
    flags = dict(flag.partition("=")[::2] for flag in _words(shown))
    states = [flag.partition("=") for flag in _words(value)]
    return all(flags.get(flag) == state or (flag == "default" and not is_) for flag, is_, state in states if flag)


def _is_another_name(name: str, value: Setting, shown: str, choices: tuple[str, ...]) -> bool:
    """Whether a server that did not complain shows what was asked for under another name."""
    setting, readback = str(value).strip().lower(), shown.strip().lower()
    if name.startswith(("character_set", "collation")):
        charset, _, rest = setting.partition("_")
        return charset == "utf8" and readback in {f"{kind}_{rest}".rstrip("_") for kind in ("utf8mb3", "utf8mb4")}
    if name.endswith("storage_engine"):
        return _ENGINES.get(setting) == readback
    if re.fullmatch(r"-[0-9]+", setting):  # "as many as you think right"; one that it does not take so it adjusts aloud
        return readback.isdecimal()
    if setting.isdecimal() and not isinstance(value, bool):
        return _is_numbered(int(setting), readback, [word.lower() for word in choices])
    return _are_the_words(setting, readback)


def _is_numbered(number: int, readback: str, words: list[str]) -> bool:
    """Whether a number stands for a word, or for a set of words; ``words`` are those of the variable, if known."""
    if readback in words:
        return number == words.index(readback)
    return not re.fullmatch(r"[0-9.+-]+", readback) and readback not in {"on", "off", "yes", "no"}


def _are_the_words(setting: str, readback: str) -> bool:
    """Whether a set shows the same words, in whatever order, or a word one that was cut short."""
    setting_words, readback_words = set(_words(setting)), set(_words(readback))
    if len(setting_words) > 1 or len(readback_words) > 1:
        return setting_words <= readback_words if setting_words & (_MODES | _ALL) else setting_words == readback_words
    return bool(setting) and readback.startswith(setting) and not readback[len(setting) :].isdecimal()


def _is_larger_page(line: str, variables: Mapping[str, str]) -> bool:
    """Whether a page was refused that is larger than the usual large one: then the next smaller size is tried."""
    size, usual = _PAGE_BYTES.search(line), variables.get("large_page_size", "")
    return bool(size and usual.isdecimal() and 0 < int(usual) < int(size[1]))


def _words(text: str) -> list[str]:
    return [word.strip().lower() for word in text.split(",") if word.strip()]
