"""``python -m dbdyno.hosts.dask_agent``: an agent that has its calls made by a Dask cluster.

Any member of such a cluster can run code where its client is: all that Dask sends may hold pickles, which its protocol
takes apart whatever it is set to. So the client is in this process and nowhere else, which runs as a user without
rights where dbdyno is root; its answers are frames, held to their bounds and types like those of any host.
"""

import json
import logging
import os
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from dbdyno.compute.workers import WorkerSide, inputs_folder, work_named
from dbdyno.errors import HostError
from dbdyno.hosts.agent import Agent
from dbdyno.hosts.bundle import our_digest

_JOIN_SECONDS = 30.0
_WORKERS_SECONDS = 300.0  # for the first worker: a batch system starts them when it has room
_CORES_MAX = 1000  # that are given calls at a time: each is waited for by a thread


class DaskAgent(Agent):
    """An agent whose processors are those of a cluster."""

    def __init__(self) -> None:
        super().__init__()
        self._client: Any = None
        self._digest = our_digest()
        self._files: dict[str, Any] = {}  # name -> what stands for its content in the cluster
        self._calls: dict[int, Any] = {}

    def do_join(self, address: str, tls: dict[str, str]) -> dict[str, Any]:
        """Become a client of the cluster at an address, and wait until it has a worker."""
        from distributed import Client, Security

        security = Security(require_encryption=True, **tls) if tls else None
        try:
            self._client = Client(address, security=security, timeout=_JOIN_SECONDS, set_as_default=False)
            self._client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise HostError(f"no Dask cluster with a worker at {address}: {error or type(error).__name__}") from None
        return self.do_cores()

    def do_cores(self) -> dict[str, Any]:
        """As an agent's: the threads of all workers."""
        return {"cores": min(max(1, sum(self._client.ncores().values())), _CORES_MAX)}

    def do_call(self, work: str, ticket: int, given: str) -> tuple[dict[str, Any], bytes]:
        """As an agent's, on a worker that the cluster chooses."""
        names = [name for name in inputs_folder().glob("*") if name.name in given]
        with self._lock:
            for path in names:
                if path.name not in self._files:
                    # A task, and no scattered data: those are not made again where their worker is lost.
                    self._files[path.name] = self._client.submit(bytes, path.read_bytes(), pure=False)
        files = {path.name: self._files[path.name] for path in names}
        future = self._client.submit(_on_worker, self._digest, work, given, files, pure=False)
        self._calls[ticket] = future
        try:
            outcome = json.loads(future.result())
        finally:
            self._calls.pop(ticket, None)
        if outcome["error"] == HostError.__name__:
            raise HostError(outcome["text"])
        return {"cpu_s": outcome["cpu_s"], "error": outcome["error"]}, outcome["text"].encode()

    def do_reached(self, work: str) -> dict[str, Any]:
        """As an agent's; a cluster is not asked meanwhile."""
        return {"reached": {}}

    def do_end_calls(self, work: str) -> dict[str, Any]:
        """As an agent's."""
        self._client.cancel(list(self._calls.values()), force=True)
        return {}


def _on_worker(digest: str, work: str, argument: str, files: dict[str, bytes]) -> bytes:
    """Sent as it is here, with nothing that it needs: the cluster's scheduler takes it apart, and has no dbdyno."""
    from dbdyno.hosts.dask_agent import call_on_worker

    return call_on_worker(digest, work, argument, files)


@cache
def _digest_here() -> str:
    return our_digest()


def call_on_worker(digest: str, work: str, argument: str, files: dict[str, bytes]) -> bytes:
    """Call a function, on a worker; what came of it as JSON. ``files`` are those that ``argument`` names."""
    from distributed import get_worker

    if _digest_here() != digest:
        mismatch = "dbdyno on the workers of the Dask cluster differs from this one; install the same wheel there"
        return json.dumps({"text": mismatch, "cpu_s": 0.0, "error": "HostError"}).encode()
    worker = get_worker()
    folder = Path(worker.local_directory) / "dbdyno-inputs"  # which goes with the worker
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        if not (folder / name).exists():
            arriving = folder / f".{name}.{os.urandom(6).hex()}"
            arriving.write_bytes(content)
            arriving.replace(folder / name)
    task = worker.state.tasks.get(worker.get_current_task())
    side = WorkerSide(work_named(work), folder)

    def is_wanted() -> bool:
        return task is None or task.state == "executing"

    text, cpu_s, error = side.call(0, argument, is_wanted)
    kind = "" if error is None else type(error).__name__
    return json.dumps({"text": text if error is None else str(error), "cpu_s": cpu_s, "error": kind}).encode()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="dbdyno-dask-") as state:
        os.environ["DBDYNO_STATE_DIR"] = state
        # Its standard error is the connection's, and says why that has ended.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        warnings.simplefilter("ignore")
        with suppress(BrokenPipeError):
            DaskAgent().run()
