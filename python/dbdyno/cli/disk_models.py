"""``dbdyno disk models``: the drives there are."""

from dbdyno.cli.formats import JSON
from dbdyno.cli.printed import print_json


def models(json_: bool = JSON) -> None:
    """List the drives that can be emulated."""
    from dbdyno._native import device_models

    found = device_models()
    if json_:
        print_json(found)
        return
    width = max(len(model["name"]) for model in found)
    for model in found:
        print(f"{model['name']:{width}s}  {model['title']}")
