"""A study's part in tests of hosts: works on all of them until it is ended or one is lost, and says so, a line each.

``python -m tests.coordinator hosts.toml FOLDER``: on each host a shell with two children, one in a session of its own,
whose numbers are in FOLDER/HOST.
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


def say(word, **values):
    sys.stdout.write(json.dumps({"word": word, "at": time.monotonic(), **values}) + "\n")
    sys.stdout.flush()


def work(there, folder):
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


def main(file, folder):
    try:
        with connected(file) as there:
            say("connected")
            work(there, folder)
    except HostError as error:
        say("error", why=str(error))
    say("left")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
