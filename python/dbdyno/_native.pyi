"""The native part of dbdyno (crate ``dbdyno-py``)."""

def toml_lines(text: str) -> dict[str, int]:
    """Line (from 1) of every key and array element of a TOML text, by dotted path, e.g. ``stack.device.1``.

    Raises ``ValueError`` where the text is not TOML.
    """
