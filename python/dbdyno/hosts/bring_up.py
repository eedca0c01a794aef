"""``dbdyno hosts up``: the same dbdyno on each host, then Ray; all hosts are looked at before anything is started."""

import os
import secrets
import socket
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from ipaddress import IPv4Address
from typing import Any

from dbdyno.errors import DbdynoError, HostError, UserError
from dbdyno.hosts import cluster as clusters
from dbdyno.hosts import tls
from dbdyno.hosts.answers import Facts, LeftBehind, PutBack, RayStarted
from dbdyno.hosts.bundle import bundle, our_digest
from dbdyno.hosts.channel import Channel
from dbdyno.hosts.cluster import Cluster
from dbdyno.hosts.inventory import HostSection, Inventory
from dbdyno.hosts.node import NODE_PORTS, START_SECONDS, Node
from dbdyno.hosts.reach import NotInstalledError, here, on_each, reach, stopped
from dbdyno.hosts.with_ray import RayHosts, existing_token, needed
from dbdyno.model.printable import short
from dbdyno.system.state import new_token

# ``dbdyno hosts down``: on each host, and here, what its own undo log says.


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


Say = Callable[[str], None]
_TOKEN_BYTES = 32
_ANSWER_SECONDS = 5.0
_HEAD_RAY_FOLDER = "/dev/shm"  # noqa: S108  (a folder of its own is made in it)


@dataclass(frozen=True)
class Brought:
    """A host that is up."""

    name: str
    roles: tuple[str, ...]
    address: str
    started: bool  # now, rather than before


def bring_up(inventory: Inventory, joined_at: str, say: Say) -> list[Brought]:
    """Bring up what is not up yet; hosts that are stay as they are. Changes nothing where any host can't take part.

    Raises ``UserError`` or ``HostError``; what this call has started is then ended.
    """
    needed()
    with clusters.only_one(inventory.cluster.name), ExitStack() as stack:
        before = clusters.known(inventory.cluster.name)
        cluster = before or clusters.new(inventory.cluster.name)
        without = [name for name, host in inventory.hosts.items() if not host.ssh]
        if without and not (joined_at or cluster.joined):
            raise UserError(f"{inventory.path}: host.{without[0]}.ssh is missing; only with --address may it be")
        channels = _reached(inventory, stack, say)
        asked = {"do": "facts", "first_port": inventory.cluster.first_port + NODE_PORTS}
        its = {name: inventory.hosts[name] for name in channels}
        where = {name: {"ray_folder": host.ray_folder, "address": host.address or ""} for name, host in its.items()}
        facts = {name: one.ask({**asked, **where[name]}, Facts) for name, one in channels.items()}
        _refuse_what_differs(facts)
        _refuse_what_lacks(facts)
        cluster = _placed(cluster, inventory, joined_at, facts)
        there = {name: _tls_of(name, found) for name, found in facts.items()}
        tls.refuse_unlike(tls.look_at_tls(os.environ, cluster.address), there)
        cluster.save()
        try:
            return _started(cluster, inventory, channels, facts, say)
        except BaseException:
            if before is None:
                stack.close()
                bring_down(cluster, inventory, say)
            raise


def _reached(inventory: Inventory, stack: ExitStack, say: Say) -> dict[str, Channel]:
    """The agent of each host that has ssh. Raises ``HostError`` with what is wrong with any."""
    with_ssh = {name: host for name, host in inventory.hosts.items() if host.ssh}
    with clusters.kept_wheels(say) as kept:
        say("making wheels of what is installed here")
        wheels = bundle(kept)

        def do(name: str, host: HostSection) -> Channel:
            channel = reach(inventory, name, host, wheels)
            say(f"{name}: dbdyno is there")
            return channel

        found = on_each(with_ssh, do)
    for one in found.values():
        if isinstance(one, Channel):
            stack.enter_context(one)
    return _all_of(found)


def _all_of(found: "dict[str, Any | DbdynoError]") -> dict[str, Any]:
    """What was found, where no host failed."""
    errors = [str(one) for one in found.values() if isinstance(one, DbdynoError)]
    if errors:
        raise HostError("\n".join(errors))
    return found


def _tls_of(name: str, facts: Facts) -> tls.Tls:
    """TLS as a host says of itself. Raises ``HostError`` where it says nothing."""
    if facts.tls is None:
        raise HostError(f"{name}: it does not say whether Ray's TLS is set there, though it was asked")
    return tls.Tls(facts.tls.on, tuple(facts.tls.wrong), tuple(facts.tls.authorities))


def _refuse_what_differs(facts: dict[str, Facts]) -> None:
    """Read back on each host: a disk that lies about what it was given is found here."""
    ours = our_digest()
    wrong = [name for name, found in facts.items() if found.digest != ours]
    if wrong:
        raise HostError(f"{', '.join(wrong)}: dbdyno there differs from this one, though it was put there just now")


def _refuse_what_lacks(facts: dict[str, Facts]) -> None:
    """What would keep Ray from being started on a host."""
    if wrong := [f"{name}: {'; '.join(found.lacking)}" for name, found in facts.items() if found.lacking]:
        raise HostError("\n".join(wrong))


def _placed(cluster: Cluster, inventory: Inventory, joined_at: str, facts: dict[str, Facts]) -> Cluster:
    """The cluster with its addresses and its token, and all hosts that may be started by it."""
    hosts = cluster.with_hosts(inventory)
    if cluster.gcs:
        tls.refuse_another(cluster)
        if joined_at and joined_at != cluster.gcs:
            raise HostError(f"this cluster is up at {cluster.gcs}; dbdyno hosts down ends it, then join {joined_at}")
        return replace(cluster, hosts=hosts)
    seen = next((found.ssh_from for found in facts.values() if _is_of_this_machine(found.ssh_from)), "")
    address = inventory.cluster.address or seen
    if not address:
        said = ", ".join(f"{name} says {found.ssh_from or 'nothing'}" for name, found in facts.items())
        why = f"no host says an address of this machine as that where ssh comes from ({short(said)})" if said else ""
        raise HostError(f"{why or 'no host says how it reaches this machine'}; give its address in [cluster]")
    cluster = replace(cluster, address=address, tls=tls.is_on(), hosts=hosts)
    if joined_at:
        _refuse_deaf(joined_at)
        return replace(cluster, gcs=joined_at, joined=True, token=existing_token())
    gcs = f"{address}:{inventory.cluster.first_port + NODE_PORTS - 1}"
    return replace(cluster, gcs=gcs, token=secrets.token_hex(_TOKEN_BYTES))


def _is_of_this_machine(address: str) -> bool:
    """Whether an address that a host has named is one that this machine has."""
    with suppress(ValueError, OSError), socket.socket() as tried:
        tried.bind((str(IPv4Address(address)), 0))
        return True
    return False


def _refuse_deaf(address: str) -> None:
    """Raise ``HostError`` where nothing listens at an address: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), _ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        remedy = "see that Ray's head runs there, and its port (ray start --head says both)"
        raise HostError(
            f"nothing answers at {address} ({getattr(error, 'strerror', None) or error}); {remedy}"
        ) from None


def _started(
    cluster: Cluster, inventory: Inventory, channels: dict[str, Channel], facts: dict[str, Facts], say: Say
) -> list[Brought]:
    """Ray here, then on each host, then all of them seen in the cluster."""
    with here(cluster) as channel:
        asked = start_question(_head(cluster, inventory), cluster.token)
        head_started = channel.ask(asked, RayStarted, 2 * START_SECONDS).started
    if head_started:  # what hosts may still run has lost its head
        cluster = replace(cluster, identity=new_token())
        cluster.save()
    say(f"Ray {'joined' if cluster.joined else 'is up'} at {cluster.gcs}")
    addresses = {name: host.address or facts[name].ssh_to for name, host in inventory.hosts.items()}

    def do(name: str, _: HostSection) -> RayStarted:
        its = node_of(cluster, inventory, name, addresses[name])
        done = channels[name].ask(start_question(its, cluster.token), RayStarted, 2 * START_SECONDS)
        say(f"{name}: {'Ray has joined' if done.started else 'Ray runs already'}")
        return done

    started = _all_of(on_each({name: inventory.hosts[name] for name in channels}, do))
    folders = {name: done.ray.folder for name, done in started.items()}
    with RayHosts(cluster, {name: addresses[name] for name in inventory.hosts}, folders) as found:
        found.wait_for_all()
    return [
        Brought(name, tuple(host.roles), addresses[name], name in started and started[name].started)
        for name, host in inventory.hosts.items()
    ]


def _head(cluster: Cluster, inventory: Inventory) -> Node:
    """What Ray is to be on this machine."""
    return Node(
        cluster=f"head of {cluster.name}",
        label="",
        gcs=cluster.gcs,
        head=not cluster.joined,
        address=cluster.address,
        first_port=inventory.cluster.first_port,
        ray_folder=_HEAD_RAY_FOLDER,
        object_store_bytes=inventory.cluster.object_store,
        token=bool(cluster.token),
        joined=cluster.joined,
    )


def node_of(cluster: Cluster, inventory: Inventory, name: str, address: str) -> Node:
    """What Ray is to be on a host, which the others reach at this address."""
    head = _head(cluster, inventory)
    its = replace(head, cluster=cluster.identity, label=inventory.label(name), head=False, address=address)
    return replace(its, first_port=head.first_port + NODE_PORTS, ray_folder=inventory.hosts[name].ray_folder)


def start_question(node: Node, token: str) -> dict[str, Any]:
    """What asks an agent to have Ray run so, with the cluster's token; where it does already, nothing is changed."""
    return {"do": "start", "fields": asdict(node), "token": token}


# ``dbdyno restore --hosts``: each host puts itself back by its own undo logs. Ray stays: ``hosts down`` ends it.


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
