"""``python -m tests.played_examiner``: a host's part in examining kept states, of which what is found is played.

A state's ``play.json`` says what happens on a host that examines it; its content decides what is found.
"""

import dataclasses
import hashlib
import json
import os
import signal
import time
from pathlib import Path

from dbdyno.crash.trial_cuts import read_kept
from dbdyno.errors import HostError, TrialError
from dbdyno.run import reexamine, sparse_tar


def examine(folder, name):
    """As ``run.reexamine.examined``, but that nothing is raised."""
    packed = Path(folder) / name
    assert hashlib.sha256(packed.read_bytes()).hexdigest() == name.partition(".")[0]
    place = packed.with_suffix("")
    place.mkdir()
    sparse_tar.extract(packed, place)
    packed.unlink()
    host, play = os.environ["PLAYED_HOST"], json.loads((place / "state/play.json").read_text())
    with Path(os.environ["PLAYED"]).open("a") as file:
        file.write(json.dumps({"host": host, "cut": play["cut"]}) + "\n")
    act(play.get(host) or play.get("any") or "", play)
    content = (place / "state/base.img").read_bytes()
    cut = dataclasses.replace(read_kept(place / "state").cut, lost=len(content.rstrip(b"\0")), recovery_s={"mount": 1})
    if play.get("other"):
        cut = dataclasses.replace(cut, outcome="server", cause="it ended")
    return json.dumps({"cut": dataclasses.asdict(cut), "cpu_s": 0.01})


def act(what, play):
    """Do what the state says."""
    time.sleep(play.get("seconds", 0.0))
    match what:
        case "trial error":
            raise TrialError("the loop device was detached by another")
        case "host error":
            raise HostError("its disk is full; make room")
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "program killed":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)


def main():
    lacking = os.environ.get("PLAYED_LACKING")
    reexamine.main(
        reexamine.ExaminerHost(
            examine,
            lambda _: [lacking] if lacking else [],
            lambda _: {"server mariadb": os.environ.get("PLAYED_VERSION", "10.11")},
            lambda: int(os.environ.get("PLAYED_BYTES", "0")),
        )
    )


if __name__ == "__main__":
    main()
