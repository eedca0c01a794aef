"""What a run reaches hosts by: this machine's own means, and, with ``--hosts``, the hosts of a file."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from dbdyno.errors import HostError, UserError
from dbdyno.hosts.connect import Connected, connected
from dbdyno.hosts.inventory import Inventory
from dbdyno.model.printable import short
from dbdyno.model.similar import did_you_mean
from dbdyno.plan.plan import Plan
from dbdyno.run.ports import HOST, Ports, Simulations
from dbdyno.simulation.sweep import simulators
from dbdyno.study.schema import TrialSpec
from dbdyno.workload.generator import Generated
from dbdyno.workload.simulated import point_of
from dbdyno.workload.together import FromHosts, JointLoad, JointLoadRequest, Together
from dbdyno.workload.workload import Workload


@contextmanager
def ports_over(plan: Plan, hosts: Path | None) -> Iterator[Ports]:
    """The ports of a run over the hosts of a file, which are connected to meanwhile; of this machine's alone without.

    Raises:
        UserError: The study has clients on hosts that were not given, or the hosts are not up.
        HostError: A host can't be reached.

    """
    wanted = plan.client_hosts()
    if hosts is None:
        if wanted:
            names = ", ".join(wanted)
            raise UserError(
                f"{plan.study.path}: workload.clients_from names {names}; give --hosts FILE, which says where they are"
            )
        yield HOST
        return
    with connected(hosts) as connected_hosts:
        see_that_they_are_clients(wanted, connected_hosts.inventory)
        yield with_hosts(HOST, connected_hosts) if wanted else replace(HOST, connected=connected_hosts)


@contextmanager
def simulating(plan: Plan, ports: Ports, say: Callable[[str], None]) -> Iterator[Ports]:
    """The same ports, by which simulated treatments are simulated on the hosts, where there are both.

    Raises ``HostError`` where no host can take part.
    """
    points = [json.loads(point_of(spec, 0)) for spec in plan.specs.values() if spec.stack.is_simulated]
    if ports.connected is None or not points:
        yield ports
        return
    with simulators(points, ports.connected, say) as by:
        yield replace(ports, simulations=Simulations(by))


def see_that_they_are_clients(names: list[str], inventory: Inventory) -> None:
    """Raise ``UserError`` where a host is not in the file, or is there for something else."""
    clients = [name for name, host in inventory.hosts.items() if "client" in host.roles]
    for name in names:
        if name not in clients:
            what = "does not have the role client" if name in inventory.hosts else "is not there"
            known = f"clients are {', '.join(clients) or 'none'}{did_you_mean(name, clients)}"
            raise UserError(f"workload.clients_from names {name}, which {what} in {inventory.path}; {known}")


def with_hosts(ports: Ports, connected_hosts: Connected) -> Ports:
    """The same ports with hosts: loads that come from other hosts do."""
    return with_clients(
        replace(ports, connected=connected_hosts), _address(connected_hosts), Together(connected_hosts).offer
    )


def with_clients(ports: Ports, address: str, offer: Callable[[JointLoadRequest], JointLoad]) -> Ports:
    """The same ports, by which loads that come from other hosts are offered by ``offer`` to a server at an address."""
    return replace(ports, address=address, workload_of=partial(_workload, ports.workload_of, offer))


def _address(connected_hosts: Connected) -> str:
    """The address of this machine, as the hosts reach it. Raises ``HostError`` where none is known."""
    if address := connected_hosts.inventory.cluster.address:
        return address
    origins = connected_hosts.origins()
    if address := next(filter(_is_of_this_machine, origins.values()), ""):
        return address
    reports = ", ".join(f"{name} reports {origin or 'none'}" for name, origin in origins.items())
    why = f"no host reports an address of this machine as the origin of its ssh connection ({short(reports)})"
    raise HostError(f"{why}; set address in [cluster]")


def _is_of_this_machine(address: str) -> bool:
    """Whether an address that a host has named is one that this machine has."""
    with suppress(ValueError, OSError):
        family = socket.AF_INET if ip_address(address).version == 4 else socket.AF_INET6  # noqa: PLR2004  (of IP)
        with socket.socket(family) as tried:
            tried.bind((address, 0))
            return True
    return False


def _workload(
    workload_of: Callable[[TrialSpec], Workload], offer: Callable[[JointLoadRequest], JointLoad], spec: TrialSpec
) -> Workload:
    made = workload_of(spec)
    return FromHosts(made, offer) if isinstance(made, Generated) and made.section.clients_from else made
