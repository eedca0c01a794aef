"""What a client host says of its load: bounded, and of the two kinds there are; else the load ends, with its name."""

import contextlib
import json
from threading import Event

import pytest

from dbdyno.workload import together as client_host
from dbdyno.workload.together import ClientHostLoad
from tests.local_hosts import LocalHosts
from tests.support import wait_for

READY = {"ready_ns": 5, "start": "/proc/5/fd/7"}
RESULT = {"code": 0, "said": "", "json": "{}", "series": "", "hlog": ""}


def listened(monkeypatch, script, *arguments):
    monkeypatch.setattr(client_host, "_ARGV", ("sh", "-c", script, "sh", *arguments))
    with contextlib.closing(LocalHosts(["c1"])) as hosts:
        client = ClientHostLoad(hosts, "c1", {}, Event(), 1.0)
        wait_for(lambda: client.is_done)
        return client


def said(monkeypatch, *lines):
    return listened(
        monkeypatch, 'printf "%s\\n" "$@"', *[one if isinstance(one, str) else json.dumps(one) for one in lines]
    )


def test_what_a_load_says_is_taken(monkeypatch):
    client = said(monkeypatch, READY, RESULT)
    assert (client.start_path, client.result, client.trouble) == ("/proc/5/fd/7", RESULT, "")


def test_a_load_that_failed_says_why(monkeypatch):
    client = said(monkeypatch, READY, {**RESULT, "code": 1, "said": "dbdyno-load: no server\n"})
    assert (client.result, client.trouble) == (None, "c1: no server")
    assert listened(monkeypatch, "echo why >&2; exit 3").trouble == "c1: the load ended before its time: why"


@pytest.mark.parametrize(
    "lines",
    [
        ["5"],
        ["null"],
        ["[1]"],
        ["not json"],
        ["[" * 100_000],
        [{}],
        [{"start": 5, "ready_ns": 5}],
        [{**READY, "start": "/etc/passwd"}],
        [{**READY, "start": "/proc/5/fd/../../1/root"}],
        [READY, READY],
        [{**RESULT, "code": "0"}],
        [{**RESULT, "series": [1]}],
        [{**RESULT, "more": 1}],
        [{name: RESULT[name] for name in ("code", "said")}],
        [RESULT, RESULT],
        ['{"code": 1e400}'],
        ["\x1b[2J"],
    ],
    ids=lambda lines: str(lines)[:40],
)
def test_what_no_load_says_ends_it(monkeypatch, lines):
    client = said(monkeypatch, *lines)
    assert client.trouble.startswith("c1: ")
    assert client.trouble.isprintable()
    assert "nothing of a load" in client.trouble or "said twice" in client.trouble


def test_a_flood_ends_it(monkeypatch):
    monkeypatch.setattr(client_host, "_BYTES", 1000)
    for script in ("yes", "head -c 100000000 /dev/zero", "head -c 100000000 /dev/zero >&2", "yes ''"):
        assert listened(monkeypatch, script).trouble.startswith("c1: ")
