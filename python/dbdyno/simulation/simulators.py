"""Where points are simulated: on the processors here, or on those of many hosts, which get the files they name."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno._native import simulate
from dbdyno.hosts.spread import Done, Spread
from dbdyno.hosts.workers import INPUT, LocalWorkers
from dbdyno.study.drives import drive_files, with_drive_files

if TYPE_CHECKING:
    from concurrent.futures import Future

    from dbdyno.hosts.connect import Connected


def simulate_point(point: str, hear: Callable[[float], None]) -> str:
    """Return what comes of a point, both JSON; hear how many seconds of it are simulated. Raises ``ValueError``."""
    return simulate(point, lambda simulated_s, _requests: hear(simulated_s))


@dataclass(frozen=True)
class Simulators:
    """Points that are simulated; ``names`` are those that files have on other hosts, by their paths here."""

    spread: Spread = field(default_factory=lambda: Spread(LocalWorkers(simulate_point)))
    names: Mapping[str, str] = field(default_factory=dict)

    def begin(self, point: Mapping[str, Any]) -> "Future[Done]":
        """Simulate a point beside all else; ``result`` has what comes of it."""
        return self.spread.submit(json.dumps(_rename_files(point, self.names) if self.names else point))

    def result(self, future: "Future[Done]") -> Done:
        """What came of a point, waited for if need be.

        Raises ``ValueError`` where it can't be simulated, ``HostError`` where no host is left that could do it.
        """
        try:
            return future.result()
        except ValueError as error:
            text = str(error)
            for path, name in self.names.items():
                text = text.replace(name, path)
            raise ValueError(text) from None


@contextmanager
def simulators(
    points: Iterable[Mapping[str, Any]],
    connected: "Connected | None" = None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Simulators]:
    """Simulators on this machine, or on the hosts that are connected; these then have the files that the points name.

    Leaving the context ends what is being simulated. Raises ``UserError`` where a file can't be read, ``HostError``.
    """
    if connected is None:
        with Spread(LocalWorkers(simulate_point)) as spread:
            yield Simulators(spread)
        return
    from dbdyno.hosts.spread import input_name, spread_over

    paths = sorted({path for point in points for path in _files(point)})
    names = {path: input_name(Path(path)) for path in paths}
    files = {name: Path(path) for path, name in names.items()}
    with spread_over(connected, simulate_point, files, say) as spread:
        yield Simulators(spread, {path: f"{INPUT}{name}" for path, name in names.items()})


def _files(point: Mapping[str, Any]) -> list[str]:
    """The files that a point names: of its trace, and of its drive."""
    return [*point["load"].get("files", ()), *drive_files(point["device"])]


def _rename_files(point: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The same point with other names of its files."""
    renamed = {**point, "device": with_drive_files(point["device"], names.__getitem__)}
    if files := point["load"].get("files"):
        renamed["load"] = {**point["load"], "files": [names[path] for path in files]}
    return renamed
