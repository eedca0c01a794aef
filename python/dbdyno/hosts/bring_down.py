"""``dbdyno hosts down``: on each host, and here, what its own undo log says."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from dbdyno.errors import DbdynoError
from dbdyno.hosts.answers import PutBack
from dbdyno.hosts.cluster import Cluster
from dbdyno.hosts.inventory import HostSection, Inventory
from dbdyno.hosts.reach import NotInstalledError, here, on_each, reach, stopped

HERE = "this machine"


@dataclass(frozen=True)
class Ended:
    """A host that is as it was before, or why it is not."""

    name: str
    undone: tuple[str, ...]
    problem: str = ""


def bring_down(cluster: Cluster, inventory: Inventory, say: Callable[[str], None]) -> list[Ended]:
    """End what was started on each host of the file and of the last bringing-up, then here.

    Hosts that can't be reached are named, and stay known to this machine until they were.
    """
    hosts = {name: HostSection.model_validate(fields) for name, fields in cluster.with_hosts(inventory).items()}

    def do(name: str, host: HostSection) -> Ended:
        try:
            with reach(inventory, name, host, None) as channel:
                return _ended(name, stopped(channel))
        except NotInstalledError:
            return Ended(name, ())

    found = on_each({name: host for name, host in hosts.items() if host.ssh}, do)
    ended = [Ended(name, (), str(one)) if isinstance(one, DbdynoError) else one for name, one in found.items()]
    with here(cluster) as channel:
        ended.append(_ended(HERE, stopped(channel)))
    for one in ended:
        say(f"{one.name}: {one.problem or '; '.join(one.undone) or 'nothing was there'}")
    left = {one.name for one in ended if one.problem}
    if left:
        replace(cluster, hosts={name: fields for name, fields in cluster.hosts.items() if name in left}).save()
    else:
        cluster.forget()
    return ended


def _ended(name: str, answer: PutBack) -> Ended:
    undone = answer.sentences()
    return Ended(name, undone, "" if answer.whole else "; ".join(undone) or "not all could be undone")
