"""``dbdyno images``: prepared data that is kept from run to run."""

import typer

from dbdyno.cli.output import JSON, print_json
from dbdyno.errors import UserError

app = typer.Typer(
    help="Prepared data, kept from run to run: list it, clear it.",
    rich_markup_mode=None,
    invoke_without_command=True,
)
KEY_CHARS = 12  # shown; as many as distinguish them may be given


@app.callback()
def images(context: typer.Context, json_: bool = JSON) -> None:
    """List the images, the one used last first."""
    if context.invoked_subcommand is not None:
        return
    from dbdyno.cli.output import table
    from dbdyno.model.wording import count
    from dbdyno.run.images import images_folder, kept_images, limit_bytes
    from dbdyno.study.units import format_bytes

    found = [one.shown() for one in kept_images()]
    limit = limit_bytes()
    if json_:
        print_json({"folder": str(images_folder()), "limit_bytes": limit, "images": found})
        return
    rows = [[one["key"][:KEY_CHARS], one["about"], one["used_at"], _size(one["bytes"])] for one in found]
    if rows:
        print(table(("key", "what", "last used", "size"), rows, right=3))
    total = sum(one["bytes"] for one in found)
    print(f"{count(len(found), 'image')}, {_size(total)} of {format_bytes(limit)}, in {images_folder()}")


@app.command("clear")
def clear(
    key: str = typer.Argument("", metavar="[KEY]", help="The image to remove; all if not given."),
    json_: bool = JSON,
) -> None:
    """Remove one image or all; refused while a run goes on."""
    from dbdyno.run.images import kept_images, remove
    from dbdyno.system.locks import only_one

    with only_one("images clear", wait=False, say=typer.echo):
        found = [one for one in kept_images() if one.key.startswith(key)]
        if key and len(found) != 1:
            raise UserError(f"{key!r} names {len(found)} images; dbdyno images lists them")
        removed = [one.shown() for one in found]  # of which nothing can be asked once they are gone
        for one, shown in zip(found, removed, strict=True):
            remove(one.path)
            if not json_:
                print(f"removed {one.key[:KEY_CHARS]} ({one.about}), {_size(shown['bytes'])}")
    if json_:
        print_json({"removed": removed})
    elif not found:
        print("there is no image")


def _size(number: int) -> str:
    return f"{number / 1e6:,.1f} MB"
