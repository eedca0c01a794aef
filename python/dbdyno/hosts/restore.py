"""``dbdyno restore --hosts``: each host puts itself back by its own undo logs. Ray stays: ``hosts down`` ends it."""

from dataclasses import dataclass

from dbdyno.errors import HostError
from dbdyno.hosts import cluster as clusters
from dbdyno.hosts.answers import LeftBehind
from dbdyno.hosts.inventory import HostSection, Inventory
from dbdyno.hosts.reach import NotInstalledError, on_each, reach

_RESTORE_SECONDS = 600.0  # a server may take its time to end, and a mount to be let go


@dataclass(frozen=True)
class Restored:
    """A host that is as it was before, or why it is not."""

    name: str
    undone: tuple[str, ...] = ()
    left_alone: tuple[str, ...] = ()  # of studies that go on
    problem: str = ""


def restore_hosts(inventory: Inventory) -> list[Restored]:
    """Have each host of the file, and of the last bringing-up, put back what killed processes have left there."""
    cluster = clusters.known(inventory.cluster.name) or clusters.new(inventory.cluster.name)
    hosts = {name: HostSection.model_validate(fields) for name, fields in cluster.with_hosts(inventory).items()}

    def do(name: str, host: HostSection) -> Restored:
        try:
            with reach(inventory, name, host, None) as channel:
                said = channel.ask({"do": "restore"}, LeftBehind, _RESTORE_SECONDS)
        except NotInstalledError:
            return Restored(name)  # so nothing was started there
        problem = "" if said.whole else f"{name}: some of it could not be undone; end what holds it, then try again"
        return Restored(name, said.sentences(), said.sentences_left_alone(), problem)

    found = on_each({name: host for name, host in hosts.items() if host.ssh}, do)
    return [one if isinstance(one, Restored) else Restored(name, problem=str(one)) for name, one in found.items()]


def refuse_unrestored(found: list[Restored]) -> None:
    """Raise ``HostError`` where any host is not as it was."""
    if problems := [one.problem for one in found if one.problem]:
        raise HostError("\n".join(problems))
