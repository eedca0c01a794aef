"""Text from a study file or a server, made safe to print: no control characters, one line."""


def one_line(text: str) -> str:
    """Return ``text`` with every run of white space as one space and what a terminal might obey left out."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
