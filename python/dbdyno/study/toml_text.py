"""The text of a study file that dbdyno writes for a person to read and change: sections in order, with comments."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tomlkit.items import InlineTable

Path_ = tuple[str, ...]


def written(
    sections: Mapping[Path_, Mapping[str, Any]],
    remarks: Mapping[Path_, str] | None = None,
    head: Sequence[str] = (),
) -> str:
    """Return the text of a study: its sections by their paths, such as ``("server", "settings")``.

    ``remarks`` are comments of one line: beside a field, by ``(*section, field)``, or above a section, by its path.
    ``head`` stands above everything.
    """
    import tomlkit

    remarks = remarks or {}
    document = tomlkit.document()
    for line in head:
        document.add(tomlkit.comment(line))
    document.add("version", tomlkit.item(1))
    parts = [tomlkit.dumps(document)]
    for path, fields in sections.items():
        table = tomlkit.table()
        for name, value in fields.items():
            table.add(name, _in_a_line(value) if isinstance(value, Mapping) else value)
            if remark := remarks.get((*path, name)):
                table[name].comment(remark)
        for outer in reversed(path[1:]):
            inner, table = table, tomlkit.table(is_super_table=True)
            table.add(outer, inner)
        # A document of its own for each: so they stand in this order, whatever is nested in what.
        above = f"# {remarks[path]}\n" if path in remarks else ""
        parts.append(above + tomlkit.dumps({path[0]: table}).lstrip("\n"))
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _in_a_line(fields: Mapping[str, Any]) -> "InlineTable":
    from tomlkit import inline_table

    table = inline_table()
    table.update(fields)
    return table
