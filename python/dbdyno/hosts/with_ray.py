"""``Hosts`` over Ray: an actor for each host, which stays where it is put and is never started again by itself."""

import importlib.util
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from dbdyno.errors import HostError, UserError
from dbdyno.hosts import host_side
from dbdyno.hosts.carried import Carried
from dbdyno.hosts.cluster import Cluster
from dbdyno.hosts.inventory import label_of
from dbdyno.hosts.node import HERE_LABEL, HOST_LABEL, ray_settings
from dbdyno.hosts.quiet import check_not_measured
from dbdyno.hosts.ray_workers import RayWorkers
from dbdyno.hosts.workers import Work, Workers
from dbdyno.model.printable import short

CALL_SECONDS = 60.0
_AT_ONCE = 8  # questions to one host: while a program's news are waited for, it may be sent a signal
_JOIN_SECONDS = 60.0
_LOOK_AGAIN_SECONDS = 0.2
LACKING = "many hosts need Ray, which is not installed here: pip install 'dbdyno[ray]'"


def needed() -> None:
    """Raise ``UserError`` where Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise UserError(LACKING)


def existing_token() -> str:
    """The token of a cluster of another's, from where Ray itself looks for it; empty where there is none."""
    given = os.environ.get("RAY_AUTH_TOKEN")
    if given:
        return given.strip()
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray/auth_token")
    with suppress(OSError):
        return path.read_text(encoding="ascii").strip()
    return ""


class RayHosts(Carried):
    """The hosts of a cluster that is up, by the addresses of their nodes; leaving the context lets go of them."""

    def __init__(self, cluster: Cluster, addresses: Mapping[str, str]) -> None:
        needed()
        super().__init__(tuple(addresses))
        self._addresses, self._cluster = addresses, cluster.name
        self._actors: dict[str, Any] = {}
        os.environ.update(ray_settings(None))
        if cluster.token:
            os.environ.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": cluster.token})
        import ray

        self._ray = ray
        ends_us = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(
                address=cluster.gcs,
                _node_ip_address=cluster.address,
                log_to_driver=False,
                configure_logging=False,
                logging_level="error",
            )
        except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            os.environ.pop("RAY_AUTH_TOKEN", None)
            raise HostError(f"Ray at {cluster.gcs}: {short(str(error))}; dbdyno hosts status says more") from None
        finally:
            if ends_us is not None and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, ends_us)  # Ray's own would end us with the host as it is
        # Sent by its source, so that a node of another's needs nothing of ours.
        ray.cloudpickle.register_pickle_by_value(host_side)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()
        os.environ.pop("RAY_AUTH_TOKEN", None)

    def alive(self) -> frozenset[str]:
        """As the contract says: as Ray's head knows by now, which takes its time to give a host up."""
        check_not_measured("who is in the cluster")
        return frozenset(self._nodes())

    def wait_for_all(self) -> None:
        """Wait until all hosts are seen. Raises ``HostError``."""
        deadline = time.monotonic() + _JOIN_SECONDS
        while lacking := set(self.names) - self.alive():
            if time.monotonic() > deadline:
                raise HostError(f"{', '.join(sorted(lacking))}: not seen in the cluster after {_JOIN_SECONDS:g} s")
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _nodes(self) -> dict[str, str]:
        """Host -> identity of its node: known by its label, or, of another's cluster, by its address."""
        nodes = [node for node in self._ray.nodes() if node["Alive"] and HERE_LABEL not in node.get("Labels", {})]
        by_address = {node["NodeManagerAddress"]: node["NodeID"] for node in nodes}
        by_label = {node.get("Labels", {}).get(HOST_LABEL): node["NodeID"] for node in nodes}
        found = {
            name: by_label.get(label_of(self._cluster, name), by_address.get(address))
            for name, address in self._addresses.items()
        }
        return {name: str(node) for name, node in found.items() if node}

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
        found = next(one for one in self._ray.nodes() if one["NodeID"] == node)
        return int(found["Resources"].get("CPU", 1))

    def workers(self, work: Work, lost: Callable[[], Mapping[str, str]] = dict) -> Workers:
        """As the contract says."""
        return RayWorkers(self, work, lost)

    def _side(self, host: str) -> Any:  # noqa: ANN401  (Ray's handle)
        if host not in self._actors:
            self._actors[host] = self.actor(host, host_side.HostSide)
        return self._actors[host]

    def _ask(self, host: str, what: str, *given: object) -> Any:  # noqa: ANN401  (what the method of that name returns)
        exceptions = self._ray.exceptions
        seconds = CALL_SECONDS + sum(one for one in given if isinstance(one, float))  # that it is asked to wait
        try:
            return self._ray.get(getattr(self._side(host), what).remote(*given), timeout=seconds)
        except exceptions.RayTaskError as error:
            raise error.cause from None
        except exceptions.GetTimeoutError:
            raise HostError(f"{host}: no answer in {seconds:g} s") from None
        except exceptions.RayError as error:
            self._actors.pop(host, None)
            raise HostError(f"{host}: is lost: {short(str(error))}") from None
