"""What a study may add to CREATE TABLE behind the columns, and whether a server's tables have it.

A study is untrusted text, so only options of a table's own format may stand there, and a PARTITION clause: nothing that
names a file, a server, another table or rows. The load generator looks once more that the text stays the end of one
statement. Whether a server has such an option, the server says.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dbdyno.model.similar import did_you_mean
from dbdyno.mysql.settings import INNODB

LENGTH_MAX = 1000  # characters, as the load generator has it
_NUMBER = r"[0-9]{1,12}"
_SWITCH = r"[01]|DEFAULT|YES|NO|ON|OFF"
_NAME = r"\w{1,64}"
# The options that a study may give -> the values of each.
OPTIONS = {
    "ROW_FORMAT": "DEFAULT|DYNAMIC|FIXED|COMPRESSED|REDUNDANT|COMPACT|PAGE",
    "KEY_BLOCK_SIZE": _NUMBER,
    "PAGE_COMPRESSED": _SWITCH,
    "PAGE_COMPRESSION_LEVEL": "[1-9]",
    "COMPRESSION": "ZLIB|LZ4|NONE",
    "ENCRYPTED": "YES|NO|DEFAULT",
    "ENCRYPTION_KEY_ID": _NUMBER,
    "ENCRYPTION": "Y|N",
    "STATS_PERSISTENT": _SWITCH,
    "STATS_AUTO_RECALC": _SWITCH,
    "STATS_SAMPLE_PAGES": f"{_NUMBER}|DEFAULT",
    "CHECKSUM": _SWITCH,
    "PAGE_CHECKSUM": _SWITCH,
    "TRANSACTIONAL": _SWITCH,
    "DELAY_KEY_WRITE": _SWITCH,
    "PACK_KEYS": _SWITCH,
    "AVG_ROW_LENGTH": _NUMBER,
    "MAX_ROWS": _NUMBER,
    "MIN_ROWS": _NUMBER,
    "CHARSET": _NAME,
    "COLLATE": _NAME,
}
# Words that may not stand in a PARTITION clause: each names a place or another table, or begins a SELECT.
_REFUSED = frozenset({"AS", "COMMENT", "DATA", "DIRECTORY", "ENGINE", "IGNORE", "INDEX", "LIKE", "REPLACE", "ROW",
                      "SELECT", "STORAGE", "TABLE", "TABLESPACE", "UNION", "WITH"})  # fmt: skip
_OPTION = re.compile(r"\s*,?\s*(?:DEFAULT\s+)?(\w+)(?:\s*=\s*|\s+)(?:'(\w*)'|(\w+))(?![\w'])", re.IGNORECASE)
_TOKEN = re.compile(r"\s*(?:(\w+)|'([\w .:-]*)'|([(),=.+*/%<>-]))")
_ON = {"1": "1", "yes": "1", "on": "1", "0": "0", "no": "0", "off": "0"}


@dataclass(frozen=True)
class TableOptions:
    """Options with their values, in upper and lower case as they stand, and the PARTITION clause."""

    options: dict[str, str] = field(default_factory=dict)
    partitions: str = ""


def parse_table_options(text: str) -> TableOptions:
    """What a text gives. Raises ``ValueError`` with what is wrong with it."""
    if len(text) > LENGTH_MAX:
        raise ValueError(f"has {len(text)} characters; at most {LENGTH_MAX} are allowed")
    options: dict[str, str] = {}
    place = 0
    while rest := text[place:].strip():
        if re.match(r"PARTITION\b", rest, re.IGNORECASE):
            _check_partitions(rest)
            return TableOptions(options, rest)
        option = _OPTION.match(text, place)
        if option is None:
            raise ValueError(
                f'can\'t be read at {rest[:40]!r}; give options such as "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8",'
                ' and last "PARTITION BY KEY (id) PARTITIONS 16"'
            )
        name, value = option[1].upper(), option[2] or option[3] or ""
        if name not in OPTIONS:
            known = f"a study may give {', '.join(OPTIONS)}, and PARTITION BY ... last{did_you_mean(name, OPTIONS)}"
            raise ValueError(f"holds {option[1]!r}; {known}")
        if not re.fullmatch(OPTIONS[name], value, re.IGNORECASE):
            raise ValueError(f"holds {name}={value}, which is none of its values")
        options[name] = value
        place = option.end()
    return TableOptions(options)


def _check_partitions(clause: str) -> None:
    depth = place = 0
    while clause[place:].strip():
        token = _TOKEN.match(clause, place)
        if token is None:
            raise ValueError(f"has a PARTITION clause that can't be read at {clause[place:].strip()[:40]!r}")
        if token[1] and token[1].upper() in _REFUSED:
            raise ValueError(f"has a PARTITION clause with {token[1]!r}, which a study can't give")
        depth += {"(": 1, ")": -1}.get(token[3] or "", 0)
        if depth < 0:
            break
        place = token.end()
    if depth:
        raise ValueError("has a PARTITION clause with a parenthesis too many or too few")


def missing_options(
    text: str, engine: str, row_format: str, create_options: str, page_bytes: int | None
) -> Iterator[str]:
    """What a table has not of the options that it was made with, each as a clause.

    ``row_format`` is what the engine has, ``create_options`` what the server keeps of the statement, ``page_bytes`` the
    size of a page in the table's file, where the engine shows it.
    """
    wanted = parse_table_options(text)
    kept = _kept(create_options)
    row = wanted.options.get("ROW_FORMAT", "DEFAULT").casefold()
    if row not in {"default", row_format.casefold()}:
        yield f"ROW_FORMAT={row.upper()} became {row_format.upper()}"
    block = wanted.options.get("KEY_BLOCK_SIZE", "0")
    if int(block) and engine.casefold() == INNODB:
        if row_format.casefold() != "compressed":
            yield f"KEY_BLOCK_SIZE={block} is ignored, as rows are {row_format.upper()}"
        elif page_bytes is not None and page_bytes != int(block) * 1024:
            yield f"KEY_BLOCK_SIZE={block} became {page_bytes / 1024:g}"
    for name, value in wanted.options.items():
        if name in {"ROW_FORMAT", "KEY_BLOCK_SIZE", "CHARSET", "COLLATE", "CHECKSUM"} or value.casefold() == "default":
            continue
        if _plain(kept.get(name.casefold(), "")) != _plain(value) and _plain(value) not in {"0", "n", "none"}:
            got = kept.get(name.casefold())
            yield f"{name}={value} {f'became {got}' if got else 'is not there'}"
    if wanted.partitions and "partitioned" not in kept:
        yield "it has no partitions"


def _kept(create_options: str) -> dict[str, str]:
    """What information_schema lists: ``row_format=COMPRESSED `PAGE_COMPRESSED`='1' partitioned``."""
    pairs = re.findall(r"[`\"]?(\w+)[`\"]?(?:=[\"']?([\w]*)[\"']?)?", create_options)
    return {name.casefold(): value for name, value in pairs}


def _plain(value: str) -> str:
    return _ON.get(value.casefold(), value.casefold())
