"""Files that a configuration of ssh leads to, by which other users could have programs run as this one.

They are found by reading and not by ``ssh -G``, which runs what ``Match exec`` names. Sections that ssh would skip,
such as another host's, count too.
"""

import os
import re
import shlex
from collections.abc import Iterator
from glob import glob
from pathlib import Path

from dbdyno.system.files import TEXT_LIMIT_BYTES, others_write, read_regular, why_open_to_others
from dbdyno.system.state import existing

_INCLUDE_DEPTH_MAX = 16  # of files that include each other, as ssh's
_FILES_MAX = 1000
_KEYWORD_END = re.compile(r"[ \t]*=[ \t]*|[ \t]+")  # between a keyword and what it is given
_COMMANDS = {"proxycommand", "localcommand", "knownhostscommand", "remotecommand", "xauthlocation"}
_LIBRARIES = {"pkcs11provider", "securitykeyprovider", "smartcarddevice"}
# Who may write them chooses the host, or as whom it is logged in to.
_KEYS = {"userknownhostsfile", "globalknownhostsfile", "revokedhostkeys", "identityfile", "certificatefile"}
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
        if depth > _INCLUDE_DEPTH_MAX or len(looked_at) > _FILES_MAX:
            return f"{path} is included too deep, or among more files than dbdyno reads"
        for keyword, words in _settings(read_regular(path, TEXT_LIMIT_BYTES).decode(errors="replace")):
            if keyword == "include":
                included_paths = [Path(file) for word in words for file in sorted(glob(str(_path(word))))]  # noqa: PTH207  (an absolute pattern)
                waiting += [(file, depth + 1) for file in included_paths if file.is_file()]
            for named in _files_of(keyword, words):
                if why := _why_open(named):
                    return f"it names {named}, and {why}"
    return ""


def _why_open(named: Path) -> str:
    """Say why another user could change a file; one that is not there, make it. Empty where none could."""
    if named.exists():
        return why_open_to_others(named)
    folder = existing(named.parent)
    if why := why_open_to_others(folder):
        return why
    return f"others could create it in {folder}; keep it in a folder of your own" if others_write(folder.stat()) else ""


def _settings(text: str) -> Iterator[tuple[str, list[str]]]:
    """Keyword, in small letters, and words of each line (ssh_config(5))."""
    for line in text.splitlines():
        keyword, *rest = _KEYWORD_END.split(line.strip(), maxsplit=1)
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
        command_words = shlex.split(words[0]) if len(words) == 1 and " " in words[0] else words
        named = [word.removeprefix("exec") for word in command_words]
    elif keyword == "match":
        named = [part for word in words for part in word.split() if "exec" in map(str.lower, words)]
    else:
        named = words if keyword in _LIBRARIES | _KEYS | _SOCKETS else []
    for word in named:
        if word.lower() in _NO_FILE or "%" in word or "$" in word:
            continue
        if word.startswith(("/", "~")) or keyword in _KEYS:
            yield _path(word)
        if not word.startswith(("/", "~")) and keyword in _KEYS:
            yield Path.cwd() / word  # ssh takes it from where it is started


def _path(word: str) -> Path:
    """The path of a file: relative to the user's own folder of ssh, ``~`` being that user's home."""
    return Path.home() / ".ssh" / os.path.expanduser(word)  # noqa: PTH111  (of another user's home, too)
