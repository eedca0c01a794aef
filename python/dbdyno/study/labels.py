"""How a level is called."""


def level_label(level: object) -> str:
    """A level as text: TOML's own spelling for booleans, plain text for the rest."""
    return str(level).lower() if isinstance(level, bool) else str(level)
