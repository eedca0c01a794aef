"""Where the Rust sources know which product they talk to: the protocol, one dialect, and the model of an engine."""

import re
from pathlib import Path

import pytest

CRATES = Path(__file__).parents[3] / "crates"
SENTENCE_WORDS = 3

KNOWN = {
    "dbdyno-load/src/protocol/": "the client protocol",
    "dbdyno-load/src/dialect/": "all else that is particular to the servers",
    "dbdyno-load/src/slap/": "the load of mysqlslap, under its name",
    "dbdyno-load/src/oltp/options.rs": "flags under sysbench's names",
    "dbdyno-blk/src/source/innodb": "the model of the engine",
    "dbdyno-blk/src/source/mod.rs": "gives out that model",
    "dbdyno-blk/src/point/load.rs": "the load that runs on that model",
}
NAME = re.compile(r"mysql|mariadb|innodb", re.IGNORECASE)
STRING = re.compile(r'b?r?#*"(?:\\.|[^"\\])*"#*', re.DOTALL)
ERROR_CODE = re.compile(r"\b(?:1020|104[0-9]|1062|114[2-6]|1205|1213|1227|1295)\b")
VARIABLE = re.compile(r"@@(?:GLOBAL|SESSION)\.\w+")


def production(path):
    """Return the code of a file without comments and tests; strings that are sentences to people are empty.

    A string with several words is one, unless a name stands in it as SQL has it: quoted or before a point.
    """
    text = path.read_text(encoding="utf-8").split("#[cfg(test)]")[0]

    def shortened(found):
        string = found[0]
        is_sentence = len(string.split()) >= SENTENCE_WORDS
        is_sql = re.search(r"'(?:mysql|mariadb|innodb)'|\bmysql\.\w+ WHERE|@@", string, re.IGNORECASE)
        return '""' if is_sentence and not is_sql else string

    return re.sub(r"//[^\n]*", "", STRING.sub(shortened, re.sub(r"^\s*//[^\n]*", "", text, flags=re.MULTILINE)))


def sources():
    """Yield the files that are none of tests, by their path from ``crates``."""
    for path in sorted(CRATES.glob("*/src/**/*.rs")):
        if not path.name.endswith("tests.rs"):
            yield path.relative_to(CRATES).as_posix(), path


def test_the_product_is_named_by_the_protocol_and_the_dialect_alone():
    named = {name for name, path in sources() if NAME.search(production(path))}
    assert sorted(name for name in named if not name.startswith(tuple(KNOWN))) == []
    unused = [place for place in KNOWN if not any(name.startswith(place) for name in named)]
    assert unused == [], "what names nothing any more leaves the list"


@pytest.mark.parametrize("pattern", [ERROR_CODE, VARIABLE])
def test_codes_of_errors_and_variables_stand_in_the_dialect(pattern):
    apart = {name: pattern.findall(production(path)) for name, path in sources() if name.startswith("dbdyno-load")}
    outside = {name: hits for name, hits in apart.items() if hits and not name.startswith(tuple(KNOWN)[:2])}
    assert outside == {}
    assert any(apart.values())
