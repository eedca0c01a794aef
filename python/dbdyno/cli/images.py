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

    shown_images = [image.shown() for image in kept_images()]
    limit = limit_bytes()
    if json_:
        print_json({"folder": str(images_folder()), "limit_bytes": limit, "images": shown_images})
        return
    rows = [
        [image["key"][:KEY_CHARS], image["about"], image["used_at"], _size(image["bytes"])] for image in shown_images
    ]
    if rows:
        print(table(("key", "what", "last used", "size"), rows, right=3))
    total = sum(image["bytes"] for image in shown_images)
    print(f"{count(len(shown_images), 'image')}, {_size(total)} of {format_bytes(limit)}, in {images_folder()}")


@app.command("clear")
def clear(
    key: str = typer.Argument("", metavar="KEY", help="The image to remove; all if not given."),
    json_: bool = JSON,
) -> None:
    """Remove one image or all; refused while a run goes on."""
    from dbdyno.run.images import kept_images, remove
    from dbdyno.system.locks import only_one

    with only_one("images clear", wait=False, say=typer.echo):
        chosen_images = [image for image in kept_images() if image.key.startswith(key)]
        if key and len(chosen_images) != 1:
            raise UserError(f"{key!r} names {len(chosen_images)} images; dbdyno images lists them")
        removed = [image.shown() for image in chosen_images]  # of which nothing can be asked once they are gone
        for image, shown in zip(chosen_images, removed, strict=True):
            remove(image.path)
            if not json_:
                print(f"removed {image.key[:KEY_CHARS]} ({image.about}), {_size(shown['bytes'])}")
    if json_:
        print_json({"removed": removed})
    elif not chosen_images:
        print("there is no image")


def _size(number: int) -> str:
    return f"{number / 1e6:,.1f} MB"
