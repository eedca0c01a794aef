"""The commands that are compared: ours, mysqlslap, sysbench and the floor, each with the same load."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cost import Group, Tool
from private_server import captured

if TYPE_CHECKING:
    import pathlib

    from private_server import PrivateServer

SYSBENCH_SCHEMA, SLAP_SCHEMA = "sb", "slapkey"
LISTED_QUERIES_MAX = 20_000
MODES = {"text": "--db-ps-mode=disable", "prepared": "--db-ps-mode=auto"}
WRITING_ROWS = 1000
READ_WRITE_QUERIES = 20
# With this many clients two threads are worth trying.
MORE_THREADS_AT = 256

Transport = Literal["unix", "tcp"]


@dataclass(frozen=True)
class Programs:
    """Where they are; ``None`` for a peer that is not installed."""

    ours: str
    floor: str
    mysqlslap: str | None = shutil.which("mysqlslap")
    sysbench: str | None = shutil.which("sysbench")


@dataclass(frozen=True)
class Bench:
    """Programs, a server with the data on it, and a folder for files."""

    programs: Programs
    server: PrivateServer
    folder: pathlib.Path
    rows: int

    def slap_login(self, transport: Transport) -> list[str]:
        """The flags that mysqlslap and ours share."""
        if transport == "tcp":
            place = ["--host=127.0.0.1", f"--port={self.server.port}", "--protocol=tcp"]
        else:
            place = [f"--socket={self.server.socket}"]
        return ["--no-defaults", "--user=root", *place, "--concurrency={clients}", "--number-of-queries={events}"]

    def oltp_login(self, transport: Transport) -> list[str]:
        """The flags that sysbench and ours share."""
        if transport == "tcp":
            place = ["--mysql-host=127.0.0.1", f"--mysql-port={self.server.port}"]
        else:
            place = [f"--mysql-socket={self.server.socket}"]
        database = ["--mysql-user=root", f"--mysql-db={SYSBENCH_SCHEMA}", f"--table-size={self.rows}"]
        return [*place, *database, "--rand-type=uniform"]

    def bounded(self) -> list[str]:
        """The flags that bound a run of sysbench and of ours."""
        return ["--time=0", "--threads={clients}", "--events={events}"]

    def slap_data(self) -> list[str]:
        """The flags that shape the table of the key load."""
        return [
            "--auto-generate-sql",
            "--auto-generate-sql-add-autoincrement",
            "--auto-generate-sql-load-type=key",
            f"--auto-generate-sql-write-number={self.rows + 1}",
        ]

    def prepare(self) -> None:
        """Tables of the point selects: one as mysqlslap makes it, one as sysbench does."""
        self.server.sql(f"CREATE SCHEMA {SYSBENCH_SCHEMA}")
        login = [part for part in self.slap_login("unix") if "{" not in part]
        slap = [self.programs.ours, "slap", *login, *self.slap_data(), f"--create-schema={SLAP_SCHEMA}"]
        subprocess.run([*slap, "--phase=prepare"], check=True, stdout=subprocess.DEVNULL)
        oltp = [self.programs.ours, "oltp", "read_write", "--no-defaults", *self.oltp_login("unix")]
        subprocess.run([*oltp, "prepare"], check=True, stdout=subprocess.DEVNULL)
        step = max(self.rows // LISTED_QUERIES_MAX, 1)
        # As far apart as the step and in an order that jumps, so that no two neighbours are on one page.
        keys = [1 + (number * step * 7919) % self.rows for number in range(self.rows // step)]
        lines = [f"SELECT intcol1,charcol1 FROM t1 WHERE id =  '{key}'\n" for key in keys]
        (self.folder / "keys.sql").write_text("".join(lines), encoding="ascii")

    def ours_slap(self, name: str, transport: Transport, *flags: str) -> Tool:
        """The key load on the table that is there."""
        command = [self.programs.ours, "slap", *self.slap_login(transport), *self.slap_data(), "--silent", *flags]
        return Tool(name, (*command, f"--create-schema={SLAP_SCHEMA}", "--phase=run"), "ours")

    def ours_oltp(self, name: str, load: str, mode: str, transport: Transport, *flags: str) -> Tool:
        """A load of sysbench's by us."""
        command = [
            self.programs.ours,
            "oltp",
            load,
            "--no-defaults",
            *self.oltp_login(transport),
            *self.bounded(),
            MODES[mode],
        ]
        return Tool(name, (*command, *flags, "run"), "ours")

    def peers_sysbench(self, load: str, transport: Transport) -> list[Tool]:
        """The same by sysbench, text and prepared."""
        if not self.programs.sysbench:
            return []
        command = [self.programs.sysbench, f"oltp_{load}", *self.oltp_login(transport), *self.bounded()]
        return [Tool(f"sysbench {mode}", (*command, flag, "run"), "peer") for mode, flag in MODES.items()]

    def peers_mysqlslap(self, transport: Transport) -> list[Tool]:
        """The key load of mysqlslap, which fills its table in every run, and a file of such statements."""
        if not self.programs.mysqlslap:
            return []
        login = [self.programs.mysqlslap, *self.slap_login(transport), "--csv"]
        listed = [f"--query={self.folder / 'keys.sql'}", f"--create-schema={SLAP_SCHEMA}"]
        return [
            Tool("mysqlslap key", (*login, *self.slap_data()), "peer", "slap csv"),
            Tool("mysqlslap -q", (*login, *listed), "peer", "slap csv"),
        ]

    def floors(self, transport: Transport) -> list[Tool]:
        """Bare sending and receiving of the bytes that we and the server say."""
        tools = []
        for mode in MODES:
            command = self.ours_oltp("", "point_select", mode, "unix").filled(1, 20)
            request, reply = captured(self.server, [part.replace(self.server.socket, "SOCKET") for part in command])
            files = [self.folder / f"{mode}.request", self.folder / f"{mode}.reply"]
            for path, data in zip(files, (request, reply), strict=True):
                path.write_bytes(data)
            flags = ["--clients={clients}", "--round-trips={events}", f"--request={files[0]}", f"--reply={files[1]}"]
            tcp = ["--tcp"] if transport == "tcp" else []
            tools.append(Tool(f"floor {mode}", (self.programs.floor, *flags, *tcp), "floor", "floor json"))
        return tools

    def point_select(self, transport: Transport, clients: int, queries: int) -> Group:
        """Select by key, by all tools."""
        ours = [self.ours_slap("ours slap key", transport)]
        ours += [self.ours_oltp(f"ours oltp {mode}", "point_select", mode, transport) for mode in MODES]
        if clients >= MORE_THREADS_AT:
            two = "--io-threads=2"
            ours.append(self.ours_slap("ours slap key, 2 threads", transport, two))
            for mode in MODES:
                ours.append(self.ours_oltp(f"ours oltp {mode}, 2 threads", "point_select", mode, transport, two))
        peers = [*self.peers_mysqlslap(transport), *self.peers_sysbench("point_select", transport)]
        return Group("point select", transport, clients, queries, 1, [*ours, *peers, *self.floors(transport)])

    def slap_load(self, load: str, clients: int, queries: int) -> Group:
        """``write`` or ``mixed``, each run on a fresh table, as mysqlslap has it."""
        flags = [
            *self.slap_login("unix"),
            "--auto-generate-sql",
            "--auto-generate-sql-add-autoincrement",
            f"--auto-generate-sql-load-type={load}",
            f"--auto-generate-sql-write-number={WRITING_ROWS + 1}",
            "--csv",
        ]
        tools = [Tool(f"ours slap {load}", (self.programs.ours, "slap", *flags), "ours", "slap csv")]
        if self.programs.mysqlslap:
            tools.append(Tool(f"mysqlslap {load}", (self.programs.mysqlslap, *flags), "peer", "slap csv"))
        return Group(f"slap {load}", "unix", clients, queries, 1, tools)

    def read_write(self, clients: int, queries: int) -> Group:
        """Transactions of 20 statements."""
        ours = [self.ours_oltp(f"ours oltp {mode}", "read_write", mode, "unix") for mode in MODES]
        tools = [*ours, *self.peers_sysbench("read_write", "unix")]
        return Group("oltp read_write", "unix", clients, queries // READ_WRITE_QUERIES, READ_WRITE_QUERIES, tools)
