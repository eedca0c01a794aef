"""What may leave this machine in a shared result: numbers, and words that dbdyno itself knows.

Nothing is searched for names, for nobody can list them all. A text leaves if each of its words is one of dbdyno's own:
of the study file, the typed results, the catalogues of drives, kernels, schedulers and filesystems, or ``words.txt``.
Any other gets a stand-in, the same one wherever it stands, so that what was alike and what differed still does.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from inspect import isclass
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

from dbdyno.analysis.stand_ins import VERSION, numbered
from dbdyno.model.printable import short

TEXT_CHARACTERS_MAX = 1000  # an optimizer_switch of a server has some 800
ALLOWED_MAX, ALLOWED_CHARACTERS_MAX = 50, 80  # words that the sender lets out
# Fields whose value names a thing and nothing that was measured: left out, whatever it is.
NAMING = {
    "serial", "wwn", "uuid", "path", "socket", "image", "image_sha256", "kept", "kept_sha256", "study_sha256",
    "microcode", "version_source_revision", "build", "parameters",
}  # fmt: skip
PROSE = {"cause", "text", "question", "expect", "result"}  # of people, or of tools about this machine
PROSE_LEFT_OUT = "left out"
HOSTS = {"host", "hosts"}
_PLAIN = re.compile(r"[A-Za-z0-9_ ,.;:=()+|%<>\[\]#*/®™-]*")
_SLASH = re.compile(r"(?<=[A-Za-z])/(?=s\b)|(?<=GNU)/(?=Linux)|(?<=usercopy)/(?=swapgs)")  # that is no path's
_WORD = re.compile(r"[A-Za-z0-9]+")
_PLACE = re.compile(r"/|:(?! |$)|\d+(?:\.\d+){3}")  # of a file or a machine: a path, a port, an address
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|\+00:00)")
_DECIMAL = re.compile(r"-?\d{1,6}\.\d{1,17}")
_DIGITS = re.compile(r"\d{1,20}")
_SHORT_DIGITS = 6  # of a number that may be any
_ROUND = (512, 1000, 3600)
_LIMITS = {str(2**bits - less) for bits in (31, 32, 63, 64) for less in (0, 1)}
_NUMBERED = re.compile(
    r"\d{1,7}(?:k|m|g|t|b|kb|mb|gb|tb|kib|mib|gib|tib|s|ms|us|ns|min|h|hz|khz|mhz|ghz|x)"
    r"|[tc]\d{1,4}|b\d{1,5}a\d{1,2}(?:p\d{1,4})?|p\d{1,4}|node\d{1,3}|[shv]d[a-z]{1,2}\d{0,2}|nvme\d{1,2}n\d{1,2}|loop\d{1,4}|deb\d{1,2}u\d{1,2}|p50|p9+|0x0"
)
_HOST = re.compile(r"host-\d{1,4}")  # of a copy, which has its stand-in already
_MODEL_NUMBER = re.compile(r"[a-z]{0,2}\d{1,5}[a-z]{0,3}|v\d")  # of a processor


@cache
def vocabulary() -> frozenset[str]:
    """Return all words that dbdyno knows, in small letters."""
    return frozenset(word.lower() for text in _texts() for word in _WORD.findall(text))


def _texts() -> Iterator[str]:
    from dbdyno._native import device_models, kernels
    from dbdyno.filesystems import KINDS
    from dbdyno.model import cut, design, results
    from dbdyno.model.design import BOOTED_KERNELS, BUSES
    from dbdyno.model.metrics import METRICS, REPORTED_METRICS
    from dbdyno.mysql.settings import ANALYSED, TEXTS
    from dbdyno.store import events, records
    from dbdyno.store.header import Header
    from dbdyno.study import beside, levels, schema, suite, workloads
    from dbdyno.study.document import FileSection

    own = (Path(__file__).parent / "words.txt").read_text(encoding="utf-8")
    yield from (line for line in own.splitlines() if not line.startswith("#"))
    yield from (*KINDS, *BOOTED_KERNELS, *BUSES, *METRICS, *REPORTED_METRICS, *TEXTS, ANALYSED)
    yield from (model["name"] for model in device_models())
    for kernel in kernels():
        yield kernel["name"]
        for scheduler, tunables in kernel["schedulers"].items():
            yield from (scheduler, *tunables)
    for module in (schema, workloads, beside, levels, suite):
        yield from (name for name, table in vars(module).items() if isclass(table) and issubclass(table, FileSection))
        for table in vars(module).values():
            if isclass(table) and issubclass(table, FileSection):
                for name, about in table.model_fields.items():
                    yield from (name, about.alias or "", *_choices(about.annotation))
    for kind in [
        Header,
        *(kind for module in (design, cut, results, records, events) for kind in vars(module).values()),
    ]:
        if isclass(kind) and (is_dataclass(kind) or is_typeddict(kind)):
            yield from _names(kind)


def _names(kind: type) -> Iterator[str]:
    """Yield the fields of a record, and the words that a field of it may be."""
    yield from ([attribute.name for attribute in fields(kind)] if is_dataclass(kind) else kind.__annotations__)
    for hint in get_type_hints(kind).values():
        yield from _choices(hint)


def _choices(annotation: Any) -> Iterator[str]:  # noqa: ANN401  (any type)
    """Yield the words that a type allows."""
    if get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
        return
    for inner in get_args(annotation):
        yield from _choices(inner)


@dataclass
class Words:
    """Texts as they may leave: their words, or a stand-in. What was replaced is kept, to be shown before it is sent.

    ``allowed`` are texts that the sender of the result lets out unchanged.
    """

    allowed: Collection[str] = ()
    replaced: dict[str, str] = field(default_factory=dict)  # text -> what stands for it
    places: dict[str, str] = field(default_factory=dict)  # text -> where it stood first
    _kept: set[str] = field(default_factory=set)
    _given: set[str] = field(default_factory=set)  # what texts became, so that two stay two

    def name_hosts(self, hosts: Iterable[str]) -> None:
        """Have these names be hosts wherever they stand, whether dbdyno knows such a word or not."""
        for host in hosts:
            self._stand_in(host, "host", "hosts", host if _HOST.fullmatch(host) else "")

    def text(self, text: str, place: str = "") -> str:
        """Return a text as it may leave."""
        if text in self.replaced or text in self._kept:
            return self.replaced.get(text, text)
        if text in self.allowed or is_known(text, model_numbers=_is_processor(place)):
            if text in self._given:  # it stands for another text already
                return self._stand_in(text, "name", place, text)
            self._kept.add(text)
            self._given.add(text)
            return text
        before, of, name = text.partition(" of ")
        if of and is_known(before):  # a layer of a named disk
            return f"{before} of {self.text(name, place)}"
        if " / " in text:  # the label of a treatment
            return " / ".join(self.text(level, place) for level in text.split(" / "))
        version = VERSION.match(text)
        return self._stand_in(text, "name", place, version[1] if version else "")

    def _stand_in(self, text: str, kind: str, place: str, version: str = "") -> str:
        if text not in self.replaced:
            stand_ins = (numbered(kind, version, number) for number in count(1))
            stand_in = version
            while not stand_in or stand_in in self._given:
                stand_in = next(stand_ins)
            self.replaced[text], self.places[text] = stand_in, place
            self._given.add(stand_in)
        return self.replaced[text]

    def document(self, value: Any, place: str = "") -> Any:  # noqa: ANN401  (whatever JSON can hold)
        """Return a document of which only numbers and known words are left, its tables as they were.

        What names a thing is left out with its key, and so is a number that is none.
        """
        if isinstance(value, str):
            return self.text(value, place)
        if isinstance(value, list | tuple):
            return [self.document(member, place) for member in value if not _is_no_number(member)]
        if not isinstance(value, Mapping):
            return value
        document = {}
        for key, member in value.items():
            below = f"{place}.{key}" if place else key
            if key in NAMING or _is_no_number(member):
                continue
            if key in PROSE and isinstance(member, str):
                document[key] = PROSE_LEFT_OUT if member else ""
            elif key in HOSTS and isinstance(member, str | list):
                self.name_hosts(filter(None, [member] if isinstance(member, str) else map(str, member)))
                document[key] = self.document(member, below)
            else:
                document[self.text(str(key), place)] = self.document(member, below)
        return document

    def replacements(self) -> list[dict[str, str]]:
        """Return what was replaced: where it stood first, the text, and what stands for it."""
        return [
            {"place": short(self.places[text], 80), "text": short(text, 80), "by": stand_in}
            for text, stand_in in self.replaced.items()
            if text != stand_in
        ]


def is_known(text: str, *, model_numbers: bool = False) -> bool:
    """Whether a text holds nothing but numbers and words that dbdyno knows, and is no place of a file or machine."""
    if len(text) > TEXT_CHARACTERS_MAX or not _PLAIN.fullmatch(text):
        return False
    if _TIME.fullmatch(text) or _DECIMAL.fullmatch(text):
        return True
    bare = _SLASH.sub(" ", text)
    if _PLACE.search(bare):
        return False
    known = vocabulary()
    return all(
        word in known or _is_plain_number(word) or bool(_NUMBERED.fullmatch(word))
        or (model_numbers and bool(_MODEL_NUMBER.fullmatch(word)))
        for word in map(str.lower, _WORD.findall(bare))
    )  # fmt: skip


def _is_plain_number(word: str) -> bool:
    """Whether a word is a number that is no serial: a short one, a limit of the machine, or a round one."""
    if not _DIGITS.fullmatch(word):
        return False
    return len(word) <= _SHORT_DIGITS or word in _LIMITS or any(int(word) % step == 0 for step in _ROUND)


def _is_processor(place: str) -> bool:
    return place.endswith("cpu.model") or place.rpartition(".")[2] == "cpu"


def _is_no_number(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
