"""A study's part in tests of hosts: works on all of them until it is ended or one is lost, and says so, a line each.

``python -m tests.coordinator hosts.toml FOLDER [again]``: on each host a shell with two children, one in a session of
its own, whose numbers are in FOLDER/HOST. With ``again`` it waits until the lost host is back, and works on it.
"""

import json
import sys
import time
from pathlib import Path

from dbdyno.errors import HostError
from dbdyno.hosts.connect import connected

SCRIPT = (
    "setsid sleep 3600 & echo $! > {file}.part; sleep 3600 & echo $! $$ >> {file}.part; mv {file}.part {file}; wait"
)


BACK_SECONDS = 150


def say(word, **values):
    sys.stdout.write(json.dumps({"word": word, "at": time.monotonic(), **values}) + "\n")
    sys.stdout.flush()


def work(there, folder, *, again):
    for host in there.hosts.names:
        there.hosts.start(host, ["sh", "-c", SCRIPT.format(file=folder / host)])
    say("working", why="")
    while not there.lost():
        time.sleep(0.05)
    say("lost", why=dict(there.why_lost()))
    for host in there.hosts.names:
        if host in there.lost():
            continue
        there.hosts.start(host, ["true"])
    if again:
        work_again(there, *there.lost())


def work_again(there, host):
    until = time.monotonic() + BACK_SECONDS
    while there.lost() and time.monotonic() < until:
        time.sleep(0.05)
    if there.lost():
        raise HostError(f"{host} is not back: {there.why_not_back()}")
    echo = there.hosts.start(host, ["cat"], stdin=b"back")
    said = b"".join(one.content for one in [*there.hosts.stream(host, echo)][:-1]).decode()
    say(said, why="", bound_ns=there.offsets([host])[host].bound_ns)


def main(file, folder, again=None):
    try:
        with connected(file) as there:
            say("connected")
            work(there, folder, again=again is not None)
    except HostError as error:
        say("error", why=str(error))
    say("left")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
