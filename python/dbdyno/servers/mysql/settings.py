"""A study's settings beside the variables that the very server says it has: whole names, and values of their kind."""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from dbdyno.servers.mysql.variables import Variable, variables_of
from dbdyno.servers.sources.installation import Installation
from dbdyno.study.mistakes import did_you_mean, shown
from dbdyno.study.section import Setting
from dbdyno.study.server_settings import setting_mistake, text_mistake

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[kKmMgGtTpPeE]?")
_NEAR = 0.8  # of hundreds of names some are somewhat like any other
_SWITCH = {"on", "off", "true", "false", "yes", "no", "0", "1"}


def misset(installation: Installation, engine: str, settings: Mapping[str, Setting]) -> dict[str, str]:
    """What is wrong with each setting, by its name. Raises ``UserError`` where the server does not list what it has."""
    if not settings:
        return {}
    known = variables_of(installation, engine)
    said = {name: _mistake(installation, known, name, value) for name, value in settings.items()}
    return {name: text for name, text in said.items() if text}


def _mistake(installation: Installation, known: Mapping[str, Variable], name: str, value: Setting) -> str | None:
    if (refused := setting_mistake(name, value)) is not None:
        return refused
    if name not in known:
        near = get_close_matches(name, known, n=1, cutoff=_NEAR)
        meant = did_you_mean(name, [one for one in near if setting_mistake(one, 1) is None])
        return f"is no variable that {installation.title} ({installation.name}) is started with{meant}"
    if name == "log_bin":
        return None  # as an option a name, but what a study gives is true or false
    return _unfit(known[name], name, value)


def _unfit(variable: Variable, name: str, value: Setting) -> str | None:
    """Why a value is none of a variable's kind; ``None`` if it is one."""
    text = ("ON" if value else "OFF") if isinstance(value, bool) else str(value)
    if variable.kind == "plugin":
        return "is set by dbdyno: it decides what the server loads"
    if variable.kind == "text":
        return text_mistake(name, text)
    if variable.kind == "number" and not _NUMBER.fullmatch(text):
        return f'is {shown(value)}; give a number, or a size such as "256M"'
    if variable.kind == "switch" and text.lower() not in _SWITCH:
        return f"is {shown(value)}; give true or false"
    words = [text] if variable.kind == "choice" else list(filter(None, text.split(",")))
    for word in words if variable.choices else ():
        if not word.isdigit() and word.lower() not in map(str.lower, variable.choices):
            return f"is {shown(value)}; allowed are {', '.join(variable.choices)}{did_you_mean(word, variable.choices)}"
    return None
