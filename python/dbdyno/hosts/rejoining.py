"""Lost hosts are tried again for as long as a study or a sweep goes on over the others, each by a thread of its own.

A host is worked on again once ssh reaches it, the same dbdyno is there, what it was at has been put back, and it has a
node of Ray, which is started where there is none. Nothing is asked of any other host for it. Where this machine is one
of the hosts, no attempt is begun while anything is measured.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Self

from dbdyno.errors import DbdynoError, HostError
from dbdyno.hosts import cluster as clusters
from dbdyno.hosts.answers import LeftBehind, RayStarted
from dbdyno.hosts.bring_up import node_of, start_question
from dbdyno.hosts.channel import ANSWER_SECONDS, Channel
from dbdyno.hosts.inventory import Inventory
from dbdyno.hosts.joining import Reached, held, reached
from dbdyno.hosts.kept import HERE, Kept
from dbdyno.hosts.node import START_SECONDS
from dbdyno.hosts.quiet import is_anything_measured
from dbdyno.hosts.with_ray import RayHosts

PAUSE_SECONDS, PAUSE_MAX_SECONDS = 5.0, 60.0  # before the first attempt, and at most; each is twice the one before
_LOOK_SECONDS = 0.25
_END_SECONDS = 2.0  # an attempt that takes longer to end is left to itself: it changes nothing any more


class Rejoining:
    """Tries again what is lost, from entering to leaving."""

    def __init__(self, inventory: Inventory, kept: Kept, hosts: RayHosts, *, measured_here: bool) -> None:
        self._inventory, self._kept, self._hosts = inventory, kept, hosts
        self._measured_here = measured_here
        self._why: dict[str, str] = {}  # it is not back yet, by the last attempt
        self._pauses: dict[str, float] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._ending = threading.Event()

    def __enter__(self) -> Self:
        self._start("hosts", self._watch)
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        until = time.monotonic() + _END_SECONDS
        for thread in list(self._threads.values()):
            thread.join(max(0.0, until - time.monotonic()))

    def why_not(self) -> Mapping[str, str]:
        """Why hosts that are lost are not back yet, of those that were tried."""
        return dict(self._why)

    def _start(self, name: str, do: Callable[..., None], *given: str) -> None:
        self._threads[name] = threading.Thread(target=do, args=given, name=f"{name} again", daemon=True)
        self._threads[name].start()

    def _watch(self) -> None:
        """Have each host that is lost tried; none any more once Ray's head is lost, as there is no cluster then."""
        while not self._ending.wait(_LOOK_SECONDS):
            lost = self._kept.lost()
            if HERE in lost:
                return
            for name in lost:
                if name not in self._threads or not self._threads[name].is_alive():
                    self._start(name, self._until_back, name)

    def _until_back(self, name: str) -> None:
        """Try at growing intervals, also from one loss of the host to the next."""
        while name in self._kept.lost():
            pause = self._pauses.get(name, PAUSE_SECONDS)
            if self._ending.wait(pause):
                return
            self._pauses[name] = min(2 * pause, PAUSE_MAX_SECONDS)
            while self._measured_here and is_anything_measured():
                if self._ending.wait(_LOOK_SECONDS):
                    return
            try:
                self._try(name)
            except DbdynoError as error:
                self._why[name] = str(error)
            else:
                self._why.pop(name, None)

    def _try(self, name: str) -> None:
        """Have a host worked on again. Raises ``DbdynoError`` where that can't be yet, nothing being changed here."""
        self._kept.let_go(name)  # where the old connection still stands, the host begins to put itself back
        found = reached(self._inventory, name, self._inventory.hosts[name])
        try:
            self._see_that_it_is_put_back(name, found.channel)
            self._see_that_ray_is_there(name, found)
            work, folder = held(found.channel.ask)
            self._hosts.again(name, work, folder)
            self._kept.again(name, found.channel)
        except BaseException:
            found.channel.close()
            raise

    def _see_that_it_is_put_back(self, name: str, channel: Channel) -> None:
        """Undo what killed programs left. Raises ``HostError`` while the guard of before is at it."""
        question = {"do": "restore", "token": self._hosts.work_of(name).token}
        said = channel.ask(question, LeftBehind, 2 * ANSWER_SECONDS)
        if not said.over:
            raise HostError(f"{name}: is being put back")
        if not said.whole:
            raise HostError(f"{name}: {'; '.join(said.sentences())}; dbdyno restore --hosts {self._inventory.path}")

    def _see_that_ray_is_there(self, name: str, found: Reached) -> None:
        """Start its node as ``up`` does, where there is none. Raises ``DbdynoError``."""
        with clusters.only_one(self._inventory.cluster.name):
            cluster = clusters.known(self._inventory.cluster.name)
            if cluster is None:
                raise HostError(f"{name}: its cluster was brought down")
            node = node_of(cluster, self._inventory, name, self._inventory.hosts[name].address or found.address)
            found.channel.ask(start_question(node, cluster.token), RayStarted, 2 * START_SECONDS)
