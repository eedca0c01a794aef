"""``Hosts`` over Ray: an actor for each host, which stays where it is put and is never started again by itself."""

import atexit
import importlib.util
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Self, TypeVar

from dbdyno.errors import HostError, UserError
from dbdyno.hosts import folder_side, host_side, ray_side
from dbdyno.hosts.carried import Carried, Guarded, check_not_measured
from dbdyno.hosts.cluster import Cluster
from dbdyno.hosts.inventory import label_of
from dbdyno.hosts.node import HERE_LABEL, HOST_LABEL, ray_settings
from dbdyno.hosts.ray_workers import RayWorkers
from dbdyno.hosts.tls import refuse_another
from dbdyno.hosts.workers import Work, Workers
from dbdyno.model.printable import short

T = TypeVar("T")
CALL_SECONDS = 60.0
_STDERR = 2
_AT_ONCE = 8  # questions to one host: while a program's news are waited for, it may be sent a signal
_JOIN_SECONDS = 60.0
_LOOK_AGAIN_SECONDS = 0.5
LACKING = "many hosts need Ray, which is not installed here: {} 'dbdyno[ray]'"


def needed() -> None:
    """Raise ``UserError`` where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        by_pipx = (Path(sys.prefix) / "pipx_metadata.json").exists()
        raise UserError(LACKING.format("pipx install --force" if by_pipx else "pip install"))


def existing_token() -> str:
    """The token of a cluster of another's, from where Ray itself looks for it; empty where there is none."""
    given = os.environ.get("RAY_AUTH_TOKEN")
    if given:
        return given.strip()
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray/auth_token")
    with suppress(OSError):
        return path.read_text(encoding="ascii").strip()
    return ""


@contextmanager
def _muted() -> Iterator[None]:
    """Have what is written to our standard error go nowhere: Ray says there which level of its log it takes, first."""
    before, nowhere = os.dup(_STDERR), os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.dup2(nowhere, _STDERR)
        yield
    finally:
        os.dup2(before, _STDERR)
        os.close(before)
        os.close(nowhere)


class RayHosts(Carried):
    """The hosts of a cluster that is up, by the addresses of their nodes; leaving the context lets go of them."""

    def __init__(
        self,
        cluster: Cluster,
        addresses: Mapping[str, str],
        folders: Mapping[str, str],
        work: Mapping[str, Guarded] | None = None,
        lost: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """``folders`` are those of Ray on each host, as far as known: its head may believe in a node that has ended.

        ``lost`` says which hosts are known to be lost, and why, long before Ray knows it.
        """
        needed()
        refuse_another(cluster)
        self._lost = lost
        super().__init__(tuple(addresses), work)
        self._addresses, self._folders, self._cluster = addresses, dict(folders), cluster.name
        self._actors: dict[str, Any] = {}
        os.environ.update(
            {**ray_settings(None), "RAY_BACKEND_LOG_LEVEL": "fatal"}
        )  # what it logs goes to our own output
        if cluster.token:
            os.environ.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": cluster.token})
        import ray

        self._ray = ray
        logging.getLogger("ray").setLevel(logging.ERROR)
        try:
            with _muted():
                self._watched(
                    lambda: ray.init(
                        address=cluster.gcs,
                        _node_ip_address=cluster.address,
                        log_to_driver=False,
                        configure_logging=False,
                        logging_level="error",
                    )
                )
        except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            os.environ.pop("RAY_AUTH_TOKEN", None)
            raise HostError(f"Ray at {cluster.gcs}: {short(str(error))}; dbdyno hosts status says more") from None
        # It would print what became of nodes to our standard output, which is the verb's.
        setattr(import_module("ray._private.worker"), "print_to_stdstream", lambda *_, **__: None)  # noqa: B010  (typed)
        # Sent by its source, so that a node of another's needs nothing of ours.
        for module in (ray_side, host_side, folder_side):
            ray.cloudpickle.register_pickle_by_value(module)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(HostError):
            self._watched(self._ray.shutdown)
        os.environ.pop("RAY_AUTH_TOKEN", None)

    def _watched(self, call: Callable[[], T]) -> T:
        """Do what asks Ray's head; where that has ended, Ray would wait for minutes, in a way that no signal ends.

        Not in the main thread, Ray leaves our signals alone, too. Raises ``HostError`` where all hosts are lost.
        """
        done: Future[T] = Future()

        def do() -> None:
            try:
                done.set_result(call())
            except BaseException as error:  # noqa: BLE001  (whoever waits is to have it)
                done.set_exception(error)

        threading.Thread(target=do, daemon=True).start()
        while not wait([done], _LOOK_AGAIN_SECONDS).done:
            lost = self._lost()
            if self.names and all(name in lost for name in self.names):
                atexit.unregister(self._ray.shutdown)  # which would wait for the head
                raise HostError(next(iter(lost.values())))
        return done.result()

    def alive(self) -> frozenset[str]:
        """As the contract says: as Ray's head knows by now, which takes its time to give a host up."""
        check_not_measured("who is in the cluster")
        return frozenset(self._nodes())

    def wait_for_all(self) -> None:
        """Wait until all hosts are seen. Raises ``HostError``."""
        deadline = time.monotonic() + _JOIN_SECONDS
        while lacking := set(self.names) - self.alive():
            if time.monotonic() > deadline:
                names = ", ".join(sorted(lacking))
                remedy = (
                    "see that its address in the hosts file is that of its node of Ray, and that no firewall is between"
                )
                raise HostError(f"{names}: not seen in the cluster after {_JOIN_SECONDS:g} s; {remedy}")
            time.sleep(_LOOK_AGAIN_SECONDS)

    def work_of(self, host: str) -> Guarded:
        """By what the programs of a host are known."""
        return self._work.get(host, Guarded())

    def again(self, host: str, work: Guarded, folder: str) -> None:
        """Work on a host that was lost, by what its programs and Ray's files there are known now.

        Raises ``HostError`` where its node is not seen in the cluster in time.
        """
        self._actors.pop(host, None)
        self._work[host], self._folders[host] = work, folder
        deadline = time.monotonic() + _JOIN_SECONDS
        while host not in self._nodes():
            if time.monotonic() > deadline:
                raise HostError(f"{host}: not seen in the cluster after {_JOIN_SECONDS:g} s")
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _nodes(self) -> dict[str, str]:
        """Host -> identity of its node: known by its label, or, of another's cluster, by its address."""
        nodes = [
            node
            for node in self._watched(self._ray.nodes)
            if node["Alive"] and HERE_LABEL not in node.get("Labels", {})
        ]
        by_address = {node["NodeManagerAddress"]: str(node["NodeID"]) for node in nodes}
        found = {}
        for name, address in self._addresses.items():
            label, folder = label_of(self._cluster, name), self._folders.get(name)
            ours = [node for node in nodes if node.get("Labels", {}).get(HOST_LABEL) == label]
            if folder:
                ours = [node for node in ours if str(node["RayletSocketName"]).startswith(f"{folder}/")]
            node = str(ours[0]["NodeID"]) if ours else None if folder else by_address.get(address)
            if node:
                found[name] = node
        return found

    def actor(self, host: str, made: type, *given: object, threads_per_core: int = 0) -> Any:  # noqa: ANN401  (Ray's)
        """Make an object of a class on a host, which answers ``_AT_ONCE`` questions at once, and so many more a core.

        Raises ``HostError`` where the host is not in the cluster.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        node = self._nodes().get(host)
        if node is None:
            raise HostError(f"{host}: is not in the cluster; dbdyno hosts status says more")
        there = NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        # The seed says where a trial is; Ray must move or repeat nothing by itself.
        options = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0, "scheduling_strategy": there}
        at_once = _AT_ONCE + threads_per_core * (self._cores(node) if threads_per_core else 0)
        return self._ray.remote(made).options(max_concurrency=at_once, **options).remote(*given)

    def _cores(self, node: str) -> int:
        found = next(one for one in self._watched(self._ray.nodes) if one["NodeID"] == node)
        return int(found["Resources"].get("CPU", 1))

    def workers(self, work: Work, lost: Callable[[], Mapping[str, str]] = dict) -> Workers:
        """As the contract says."""
        return RayWorkers(self, work, lost)

    def _side(self, host: str) -> Any:  # noqa: ANN401  (Ray's handle)
        if host not in self._actors:
            self._actors[host] = self.actor(host, ray_side.RaySide)
        return self._actors[host]

    def _ask(self, host: str, what: str, *given: object) -> Any:  # noqa: ANN401  (what the method of that name returns)
        seconds = CALL_SECONDS + sum(one for one in given if isinstance(one, float))  # that it is asked to wait
        self._refuse_lost(host)
        try:
            answer = getattr(self._side(host), what).remote(*given)
            return self._answered(answer, seconds, host)
        except self._ray.exceptions.RayError as error:
            self._actors.pop(host, None)
            raise HostError(f"{host}: is lost: {short(str(error))}") from None

    def _hand_on(self, source: str, asked: tuple[object, ...], target: str, given: tuple[object, ...]) -> None:
        (read, *of), (write, *to) = asked, given
        try:
            content = getattr(self._side(source), str(read)).remote(*of)  # stays there until the other node fetches it
            self._answered(getattr(self._side(target), str(write)).remote(*to, content), CALL_SECONDS, source, target)
        except self._ray.exceptions.RayError as error:
            raise HostError(f"{source} to {target}: one of them is lost: {short(str(error))}") from None

    def _answered(self, answer: Any, seconds: float, *hosts: str) -> Any:  # noqa: ANN401  (Ray's, and what it holds)
        exceptions = self._ray.exceptions
        deadline = time.monotonic() + seconds
        try:
            # A look at whether the answer is there asks nothing of anyone.
            while not self._ray.wait([answer], timeout=_LOOK_AGAIN_SECONDS)[0] and time.monotonic() < deadline:
                for host in hosts:
                    self._refuse_lost(host)
            return self._ray.get(answer, timeout=0)
        except exceptions.RayTaskError as error:
            raise error.cause from None
        except exceptions.GetTimeoutError:
            raise HostError(f"{' to '.join(hosts)}: no answer in {seconds:g} s") from None

    def _refuse_lost(self, host: str) -> None:
        if why := self._lost().get(host):
            self._actors.pop(host, None)
            raise HostError(f"{host}: is lost: {why}")
