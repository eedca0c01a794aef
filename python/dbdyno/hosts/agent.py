"""``python -m dbdyno.hosts.agent``: dbdyno's end on a host. Questions come on standard input, and with its end it ends.

Secrets come that way, too: a command line is read by every user of a host. Until a question comes it sleeps.

While a study runs over hosts, beats come. Without one for a while the agent ends, too: a network that was cut brings no
end of the input. What was started here is then ended by the guard.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from dbdyno.compute.workers import (
    WorkerSide,
    cores_here,
    inputs_folder,
    lower_priority,
    missing_inputs_here,
    work_named,
)
from dbdyno.errors import HostError
from dbdyno.hosts.frames import HEAD, failure_answer, pack_frame, parse_arguments, side_answer
from dbdyno.hosts.guard import guards_work, put_back_answer
from dbdyno.hosts.host_side import HostSide
from dbdyno.hosts.installer import MAGIC
from dbdyno.hosts.look import facts
from dbdyno.model.wording import count
from dbdyno.stack.boot_entry import clear_next_entry, missing_requirements, restart_with, running_kernel
from dbdyno.stack.restore import put_back
from dbdyno.system.clock import now
from dbdyno.system.locks import HOST_NAME, another_run, listener_pid
from dbdyno.system.state import parts_folder, state_folder

_INPUT, _OUTPUT = 0, 1
_PIECE_BYTES = 256 * 1024
_LOOK_SECONDS, _SILENT_LOOKS = 2.5, 4  # without a beat; a host that is stopped counts for one
SIDE = frozenset({
    "begin", "append", "finish", "content", "start", "read", "signal", "entries", "pieces", "piece", "begin_folder",
    "write_piece", "finish_folder", "abandon_folder",
})  # fmt: skip
# Answered by the main thread: what takes no time, and what starts a program, which would end with another thread.
_AT_ONCE = frozenset({"start", "signal", "guard"})


class Agent:
    """Answers any number of questions at a time."""

    def __init__(self) -> None:
        self._rest = bytearray()  # that came and was not read yet
        self._to = os.dup(_OUTPUT)
        os.dup2(2, _OUTPUT)  # what any library prints must not get in between
        os.set_blocking(self._to, False)
        self._writing, self._lock = threading.Lock(), threading.Lock()
        self._beaten = False
        self._side = HostSide()
        self._workers: dict[str, WorkerSide] = {}
        self._guard: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Answer until there are no more questions."""
        self._write(MAGIC + json.dumps({"agent": os.getpid()}).encode() + b"\n")
        while head := self._read(HEAD.size):
            received = now()
            number, text, length = HEAD.unpack(head)
            content, body = self._read(text), self._read(length)
            if len(content) < text or len(body) < length:
                return  # the end, in the middle of a question
            question = json.loads(content)
            what = str(question.pop("do"))
            if what == "echo":
                self._write(pack_frame(number, {"received": received, "answered": now()}))
            elif what == "beat":
                self._beaten = True
                self._write(pack_frame(number, {}))
            elif what in _AT_ONCE:
                self._answer(number, what, question, body)
            else:
                threading.Thread(target=self._answer, args=(number, what, question, body), daemon=True).start()

    def _read(self, size: int) -> bytes:
        """So many bytes of what comes; none where the end is there before, or nothing comes in time."""
        while len(self._rest) < size:
            if not self._is_in_time([_INPUT], []):
                return b""
            part = os.read(_INPUT, _PIECE_BYTES)
            if not part:
                return b""
            self._rest += part
        content = bytes(self._rest[:size])
        del self._rest[:size]
        return content

    def _is_in_time(self, reading: list[int], writing: list[int]) -> bool:
        """Wait until one can go on; while beats come, that takes no longer than they may stay away."""
        looks, seconds = (_SILENT_LOOKS, _LOOK_SECONDS) if self._beaten else (1, None)
        return any(any(select.select(reading, writing, [], seconds)) for _ in range(looks))

    def _answer(self, number: int, what: str, question: dict[str, Any], body: bytes) -> None:
        """Do what is asked; what comes of it, or why nothing does, goes back."""
        try:
            if what in SIDE:
                answer, content = side_answer(what, getattr(self._side, what)(*parse_arguments(question, body)))
            else:
                returned = getattr(self, f"do_{what}")(**question)
                answer, content = returned if isinstance(returned, tuple) else (returned, b"")
            frame = pack_frame(number, answer, content)
        except Exception as error:  # noqa: BLE001  (the asker must get an answer)
            frame = pack_frame(number, failure_answer(error))
        self._write(frame)

    def _write(self, content: bytes) -> None:
        left = memoryview(content)
        with self._writing:
            while left:
                try:
                    left = left[os.write(self._to, left) :]
                except BlockingIOError:
                    if not self._is_in_time([], [self._to]):
                        os.kill(os.getpid(), signal.SIGTERM)  # the network is cut: whichever thread this is, all ends

    def do_facts(self) -> dict[str, Any]:
        """What this host is, whence ssh came, and where it arrived."""
        words = os.environ.get("SSH_CONNECTION", "").split()
        return {**facts(state_folder()), "ssh_from": words[0] if words else "", "ssh_to": words[2] if words else ""}

    def do_guard(self) -> dict[str, Any]:
        """Have this host put back once the agent is gone, and say by what its work is known."""
        self._guard = subprocess.Popen(
            [sys.executable, "-m", "dbdyno.hosts.guard"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # else it would hold the connection open
            start_new_session=True,
        )
        return self._from_guard()

    def do_release(self) -> dict[str, Any]:
        """Put this host back now; what was undone."""
        if self._guard is None or self._guard.stdin is None:
            return put_back_answer([], whole=True)
        self._guard.stdin.close()
        try:
            return self._from_guard()
        finally:
            self._guard.wait()
            self._guard = None

    def _from_guard(self) -> dict[str, Any]:
        assert self._guard is not None and self._guard.stdout is not None  # noqa: S101, PT018  (a pipe)
        if not (line := self._guard.stdout.readline()):
            raise HostError("dbdyno's guard process has ended there; run dbdyno restore --hosts to end what it guarded")
        return dict(json.loads(line))

    def do_restore(self, token: str = "") -> dict[str, Any]:
        """Put back what killed processes have left; whether the work of that token is over, with all it changed."""
        undone, left = list[str](), list[str]()
        whole = put_back(undone.append, left.append)
        return put_back_answer(undone, whole=whole, left=left, over=not guards_work(token))

    def do_stop(self) -> dict[str, Any]:
        """Put back what killed processes have left, and remove what was sent and kept for studies."""
        answer = self.do_restore()
        lines, left = answer["undone"], answer["left_alone"]
        if left or not answer["whole"]:
            return put_back_answer([*lines, *left], whole=False)
        parts = sum(1 for _ in parts_folder().iterdir()) if parts_folder().is_dir() else 0
        for folder, what in (
            (inputs_folder(), "files that were sent for simulations were removed"),
            (parts_folder(), f"{count(parts, 'part')} of unfinished studies removed" if parts else ""),
        ):
            if folder.is_dir():
                shutil.rmtree(folder)  # what can't be removed is said as the error
                lines += [what] if what else []
        return put_back_answer(lines, whole=True)

    # Another kernel: see ``boot_entry``.

    def do_running(self) -> dict[str, Any]:
        """The kernel that runs here, and which start it is."""
        return running_kernel()

    def do_bootable(self, kernels: list[str], way: str) -> dict[str, Any]:
        """Why this host can't be restarted with one of these."""
        return {"lacking": missing_requirements(kernels, way)}

    def do_boot(self, kernel: str, way: str) -> dict[str, Any]:
        """Restart this host, in a moment; not while a run goes on here."""
        run = another_run()
        with suppress(OSError):  # of a run with another state folder, which nobody holds back
            run = run or f"process {listener_pid(HOST_NAME)}"
        if run:
            raise HostError(
                f"another run is going on there: {run}; wait until it ends, then run dbdyno restore --hosts"
            )
        restart_with(kernel, way)
        return {}

    def do_booted(self, way: str) -> dict[str, Any]:
        """It was restarted: the next start is again the usual one."""
        if way == "grub":
            clear_next_entry()
        return {}

    # Calls of one function, on all processors: see ``workers``.

    def do_cores(self) -> dict[str, Any]:
        """How many processors may be used."""
        return {"cores": cores_here()}

    def do_lacking(self, names: list[str]) -> dict[str, Any]:
        """The folder of inputs, and which of these files are not in it."""
        folder, lacking = missing_inputs_here(names)
        return {"folder": folder, "lacking": lacking}

    def do_call(self, work: str, ticket: int, given: str) -> tuple[dict[str, Any], bytes]:
        """Call a function of dbdyno's own, ``module:name``; the body is what it returns, or how it failed."""
        lower_priority()
        text, cpu_s, error = self._worker(work).call(ticket, given)
        kind = "" if error is None else type(error).__name__
        return {"cpu_s": cpu_s, "error": kind}, (text if error is None else str(error)).encode()

    def do_reached(self, work: str) -> dict[str, Any]:
        """How far each call is."""
        return {"reached": {str(ticket): far for ticket, far in self._worker(work).progress().items()}}

    def do_end_calls(self, work: str) -> dict[str, Any]:
        """End the calls that run, and those that wait."""
        with self._lock:
            worker = self._workers.pop(work, None)
        if worker is not None:
            worker.stop()
        return {}

    def _worker(self, work: str) -> WorkerSide:
        with self._lock:
            if work not in self._workers:
                self._workers[work] = WorkerSide(work_named(work))
            return self._workers[work]


if __name__ == "__main__":
    state_folder().mkdir(parents=True, exist_ok=True)
    try:
        Agent().run()
    except BrokenPipeError:
        sys.stderr.close()
