"""``dbdyno disk power-cut | power-on``: what a power cut takes."""

from dataclasses import asdict

import typer

from dbdyno.cli.disk_content import DISK
from dbdyno.cli.output import JSON, print_done
from dbdyno.cli.values import one_of


def power_cut(
    disk: str = DISK,
    seed: int = typer.Option(1, min=0, help="Seed of what survives."),
    sector: int = typer.Option(
        None, help="Bytes that are lost or kept as one: 512 or 4096; the device's sector by default."
    ),
    json_: bool = JSON,
) -> None:
    """Cut the power: what was not flushed may be lost; everything fails until power-on."""
    from dbdyno.stack.attached import find_disk

    found = find_disk(disk)
    sector = sector or found.sector
    one_of("--sector", sector, (512, 4096))
    cut = found.client().cut_power(seed, sector)
    lost = f"{cut.lost_sectors} of {cut.unflushed_sectors} unflushed sectors of {sector} bytes are lost"
    if cut.write_cache != "volatile":
        lost = f"nothing acknowledged is lost (write cache: {cut.write_cache})"
    words = f"{found.name}: power cut; {lost}; {cut.in_flight_failed} requests in flight failed"
    print_done(words, {"name": found.name, **asdict(cut)}, json_=json_)


def power_on(disk: str = DISK, json_: bool = JSON) -> None:
    """Switch the power on again: the drive starts idle, with empty caches."""
    from dbdyno.stack.attached import find_disk

    found = find_disk(disk)
    found.client().power_on()
    print_done(f"{found.name}: power on", {"name": found.name, "power": "on"}, json_=json_)


VERBS = {"power-cut": power_cut, "power-on": power_on}
