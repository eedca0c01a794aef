"""What a query costs a tool: CPU time and rate of a long run beyond a short one."""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from private_server import PrivateServer

SHORT_RUN_SHARE = 10
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
TIMEOUT_S = 600


@dataclass(frozen=True)
class Tool:
    """A tool with a load; its command has ``{clients}`` and ``{events}`` to be filled in.

    ``own_time``: where the seconds of the load alone are read, when the command does more than that.
    """

    name: str
    command: tuple[str, ...]
    kind: Literal["ours", "peer", "floor"]
    own_time: Literal["no", "slap csv", "floor json"] = "no"

    def filled(self, clients: int, events: int) -> list[str]:
        """The command."""
        return [part.replace("{clients}", str(clients)).replace("{events}", str(events)) for part in self.command]


@dataclass(frozen=True)
class Spent:
    """What one command took, in seconds."""

    client: float
    server: float
    foreign: float
    wall: float
    load: float

    def beyond(self, other: Spent) -> Spent:
        """What it took more than another."""
        return Spent(
            self.client - other.client,
            self.server - other.server,
            self.foreign + other.foreign,
            self.wall + other.wall,
            max(self.load - other.load, 1e-9),
        )


@dataclass
class Series:
    """Figures of one kind over all rounds."""

    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Their median."""
        return statistics.median(self.values)

    def json(self) -> dict[str, object]:
        """Median, bounds and all."""
        return {"median": self.median, "min": min(self.values), "max": max(self.values), "rounds": self.values}


@dataclass
class Cost:
    """One tool at one number of clients."""

    tool: Tool
    cpu_us: Series = field(default_factory=Series)
    server_cpu_us: Series = field(default_factory=Series)
    rate: Series = field(default_factory=Series)
    foreign_cores: Series = field(default_factory=Series)

    def json(self) -> dict[str, object]:
        """As the result file has it."""
        return {
            "kind": self.tool.kind,
            "cpu_us_per_query": self.cpu_us.json(),
            "server_cpu_us_per_query": self.server_cpu_us.json(),
            "queries_per_second": self.rate.json(),
            "foreign_cores": self.foreign_cores.json(),
        }


def busy_seconds() -> float:
    """CPU time that all processors together did not idle; sampled by ticks."""
    line = pathlib.Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(text) for text in line.split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND


def run(tool: Tool, server: PrivateServer, clients: int, events: int) -> Spent:
    """Runs it once; ends the benchmark if it fails."""
    command = tool.filled(clients, events)
    busy, server_cpu, start = busy_seconds(), server.cpu_seconds(), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    said = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - start
    busy, server_cpu = busy_seconds() - busy, server.cpu_seconds() - server_cpu
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"exit code {process.returncode}: {' '.join(command)}\n{said[-2000:]}")
    client = usage.ru_utime + usage.ru_stime
    foreign = max(busy - client - server_cpu, 0.0)
    load = wall
    if tool.own_time == "slap csv":
        load = float(said.splitlines()[-1].split(",")[2])
    elif tool.own_time == "floor json":
        result = json.loads(said)
        # The usage of the process holds that of the server it started.
        client = result["cpu_us_per_round_trip"] * events / 1e6
        load = result["seconds_real"]
    return Spent(client, server_cpu, foreign, wall, load)


@dataclass(frozen=True)
class Group:
    """A load at one number of clients, and the tools that are compared on it."""

    load: str
    transport: Literal["unix", "tcp"]
    clients: int
    events: int
    queries_per_event: int
    tools: list[Tool]

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.load}, {self.transport}, {self.clients} clients"


def measure(group: Group, server: PrivateServer, rounds: int, said: Callable[[str], None]) -> dict[str, Cost]:
    """Runs all tools of a group in turn, in another order in each round."""
    costs = {tool.name: Cost(tool) for tool in group.tools}
    # What an even split among the clients would leave out, mysqlslap leaves out.
    short = -(-(group.events // SHORT_RUN_SHARE) // group.clients) * group.clients
    long = max(group.events // group.clients * group.clients, 2 * short)
    for number in range(rounds):
        said(f"{group.name}: round {number + 1} of {rounds}")
        shift = number // 2 % len(group.tools)
        tools = group.tools[shift:] + group.tools[:shift]
        for tool in tools if number % 2 == 0 else reversed(tools):
            more = run(tool, server, group.clients, long).beyond(run(tool, server, group.clients, short))
            queries = (long - short) * group.queries_per_event
            cost = costs[tool.name]
            cost.cpu_us.values.append(more.client / queries * 1e6)
            cost.server_cpu_us.values.append(more.server / queries * 1e6)
            cost.rate.values.append(queries / more.load)
            cost.foreign_cores.values.append(more.foreign / more.wall)
    return costs
