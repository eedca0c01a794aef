"""``dbdyno doctor``: what this host can do, and the remedy for what it can't."""

from dbdyno.cli.formats import JSON
from dbdyno.cli.printed import print_json


def doctor(json_: bool = JSON) -> None:
    """Show what this host can do, and the remedy for each no."""
    from dbdyno.stack.capabilities import look_around

    found = look_around()
    if json_:
        able = all(one.ok for one in found if one.needed)
        rows = [{"name": o.name, "ok": o.ok, "needed": o.needed, "detail": o.detail, "remedy": o.remedy} for o in found]
        print_json({"able": able, "capabilities": rows})
        return
    width = max(len(one.name) for one in found)
    for one in found:
        remedy = f"; {one.remedy}" if one.remedy and not one.ok else ""
        print(f"{'yes' if one.ok else 'no ':3s}  {one.name:{width}s}  {one.detail}{remedy}")
