"""``Hosts`` where all of them are this machine: nothing is carried anywhere."""

from dbdyno.compute.workers import LocalWorkers
from dbdyno.hosts.contract import Hosts
from dbdyno.hosts.host_side import HostSide


class LocalHosts(Hosts):
    """Names for this machine."""

    def __init__(self, names, work=None):
        super().__init__(names, work)
        self._sides = {name: HostSide() for name in names}

    def _ask(self, host, what, *given):
        return getattr(self._sides[host], what)(*given)

    def alive(self):
        return frozenset(self._sides)

    def workers(self, work, lost=dict):
        return LocalWorkers(work, self.names)

    def close(self):
        for side in self._sides.values():
            side.close()
