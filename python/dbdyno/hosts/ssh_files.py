"""The files that a configuration of ssh leads to, by which other users could have programs run as this one.

They are found by reading and not by ``ssh -G``, which runs what ``Match exec`` names. What ssh itself would pass over,
as the section of another host, counts too.
"""

import os
import re
import shlex
from collections.abc import Iterator
from glob import glob
from pathlib import Path

from dbdyno.system.files import TEXT_LIMIT_BYTES, read_regular, why_open_to_others

_DEPTH_MAX = 16  # of files that include each other, as ssh's
_FILES_MAX = 1000
_SPLIT = re.compile(r"[ \t]*=[ \t]*|[ \t]+")  # between a keyword and what it is given
_COMMANDS = {"proxycommand", "localcommand", "knownhostscommand", "remotecommand"}
_LIBRARIES = {"pkcs11provider", "securitykeyprovider", "smartcarddevice"}
_KEYS_OF_HOSTS = {
    "userknownhostsfile",
    "globalknownhostsfile",
    "revokedhostkeys",
}  # who may write them chooses the host
_SOCKETS = {"controlpath", "identityagent"}  # who listens there instead of ssh gets what is typed
_NO_FILE = {"none", "internal", "yes", "no", "ssh_auth_sock"}


def why_ssh_is_open_to_others(config: Path) -> str:
    """Say which file a configuration of ssh leads to that another user could change; empty where there is none.

    Raises ``OSError`` where one that is there can't be read.
    """
    looked_at = set[Path]()
    waiting = [(config, 0)]
    while waiting:
        path, depth = waiting.pop()
        if path in looked_at:
            continue
        looked_at.add(path)
        if why := why_open_to_others(path):
            return why
        if depth > _DEPTH_MAX or len(looked_at) > _FILES_MAX:
            return f"{path} is included by more files than ssh reads"
        for keyword, words in _settings(read_regular(path, TEXT_LIMIT_BYTES).decode(errors="replace")):
            if keyword == "include":
                found = [Path(one) for word in words for one in sorted(glob(str(_own(word))))]  # noqa: PTH207  (from the root on)
                waiting += [(one, depth + 1) for one in found if one.is_file()]
            for named in _files_of(keyword, words):
                if named.exists() and (why := why_open_to_others(named)):
                    return f"it names {named}, and {why}"
    return ""


def _settings(text: str) -> Iterator[tuple[str, list[str]]]:
    """Keyword, in small letters, and words of each line (ssh_config(5))."""
    for line in text.splitlines():
        keyword, *rest = _SPLIT.split(line.strip(), maxsplit=1)
        if keyword and not keyword.startswith("#") and rest:
            yield keyword.strip('"').lower(), _words(rest[0])


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # a quote that does not end: ssh refuses it
        return text.split()


def _files_of(keyword: str, words: list[str]) -> Iterator[Path]:
    """Files that a line has ssh run, load or trust; what has to be looked up, or holds what ssh fills in, is none."""
    if keyword in _COMMANDS:
        given = shlex.split(words[0]) if len(words) == 1 and " " in words[0] else words
        named = [word.removeprefix("exec") for word in given]
    elif keyword == "match":
        named = [part for word in words for part in word.split() if "exec" in map(str.lower, words)]
    else:
        named = words if keyword in _LIBRARIES | _KEYS_OF_HOSTS | _SOCKETS else []
    for word in named:
        if word.lower() in _NO_FILE or "%" in word or "$" in word:
            continue
        if word.startswith(("/", "~")) or keyword in _KEYS_OF_HOSTS:
            path = _own(word)
            yield path.parent if keyword in _SOCKETS and not path.exists() else path


def _own(word: str) -> Path:
    """The path of a file: relative to the user's own folder of ssh, ``~`` being that user's home."""
    return Path.home() / ".ssh" / os.path.expanduser(word)  # noqa: PTH111  (of another user's home, too)
