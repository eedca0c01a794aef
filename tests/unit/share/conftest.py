"""Run folders to share: one with a name planted in every text of it."""

import json
import math
import os
from dataclasses import replace
from unittest.mock import patch

import pytest

from dbdyno.model.cut import Cut
from dbdyno.model.design import Comparison, Design, Disk, Factor, Fleet, Treatment
from dbdyno.share.archive import About, pack
from dbdyno.share.copy import copy_without_names
from dbdyno.store.events import Dropped, Ended, Failed, Joined, Lost, Note, Planned, Started
from dbdyno.store.header import Header
from dbdyno.store.records import Trial
from dbdyno.store.reported import DevicePrice, Prices, ReportedClaim, ReportedRow, ReportedTable
from dbdyno.store.run_folder import create
from tests.run_folders import written
from tests.unit.cli.conftest import _verbs, dbdyno  # noqa: F401  (fixtures of the command line)
from tests.unit.report.conftest import build, latencies_of, series_of
from tests.unit.report.shared_pages import observing


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """No command says how far it is: a busy host would take long enough for that."""
    monkeypatch.setattr("dbdyno.cli.share.SILENT_SECONDS", math.inf)


MARKERS = {
    "host": "db-prod-7.acme.internal",
    "user": "jdoe_of_acme",
    "path": "/home/jdoe/acme/billing",
    "serial": "S4EWNX0M123456Z",
    "number": "83640127593",
    "address": "10.20.30.40",
    "address6": "fe80::1ff:fe23:4567:890a",
    "mac": "00:16:3e:5e:6c:01",
    "mail": "jo@acme.example",
    "url": "mysql://jo:hunter2@10.20.30.40/shop",
    "sql": "SELECT iban FROM acme_customers WHERE name = 'Jo'",
    "digest": "INSERT INTO acme_orders VALUES (?)",
    "drive": "SAMSUNG-ACME-MZVL21T0",
    "load": "acme-nightly-job",
    "level": "acme-tuned",
    "disk": "acmelogs",
    "variable": "acme_secret_setting",
}
EVERY = list(MARKERS.values())


def planted(value, place=0, *, keys=True):
    """Return a document with one of the markers in the place of each of its texts, and with ``keys`` as another key."""
    if isinstance(value, str):
        return EVERY[place % len(EVERY)]
    if isinstance(value, dict):
        document = {key: planted(member, place + at, keys=keys) for at, (key, member) in enumerate(value.items())}
        return document | ({EVERY[(place + 1) % len(EVERY)]: EVERY[(place + 2) % len(EVERY)]} if keys else {})
    return [planted(one, place + at, keys=keys) for at, one in enumerate(value)] if isinstance(value, list) else value


def header():
    """Return a header with a marker in every field that holds a text of the user's."""
    m = MARKERS
    treatments = [
        Treatment(f"t{place}", {m["load"]: level, "device": m["drive"]})
        for place, level in ((1, m["level"]), (2, "none"))
    ]
    gives = {m["level"]: {f"server.settings.{m['variable']}": m["path"]}, "none": {}}
    design = Design(
        treatments=treatments, baseline="t1", comparisons=[Comparison("t1", "t2")], blocks=2, margin=0.03,
        metric="queries_per_second", seed=1, secondary_metrics=[m["variable"]], unit=m["load"],
        factors=[Factor(m["load"], "levels", [m["level"], "none"], gives=gives, groups={m["level"]: m["host"]})],
        control=Treatment("control", {m["load"]: m["level"]}),
        fleet=Fleet([m["host"], "server"], {"device": {m["host"]: m["drive"], "server": "none"}},
                    {m["host"]: Disk(m["path"], m["serial"])}),
    )  # fmt: skip
    study = {
        "stack": {"device": m["path"], "server": m["url"], "serial": m["serial"], "filesystem": "ext4"},
        "server": {"settings": {m["variable"]: m["path"], "report_host": m["host"]}, "option_file": m["path"]},
        "workload": {
            "kind": "script",
            "file": m["path"],
            "command": [m["path"], m["url"]],
            "beside": {m["load"]: {"sql": m["sql"]}},
        },
        "hosts": {"under_test": [m["host"]]},
        m["level"]: {m["load"]: [m["user"], m["mail"]]},
    }
    row, claim = ReportedRow(m["level"], m["load"], "t1", 1.0), ReportedClaim(m["sql"], [Comparison("t1", "t2")])
    table = ReportedTable(m["mail"], m["host"], "queries_per_second", m["load"], [row], [claim], m["path"])
    return Header(
        title=m["host"], question=m["sql"], design=design, study=study, expect=m["mail"], result=m["path"],
        scale=m["load"],
        versions={"kernel": f"6.1.0-{m['level']}", f"server {m['url']}": m["path"], m["path"]: m["serial"]},
        study_sha256="0123456789abcdef" * 4, study_file=f"{m['user']}.toml", reported=[table], awake=["t1"],
        cost=Prices("EUR", 5.0, 0.5, devices=[DevicePrice(m["drive"], ["t1"], m["url"], price=1.0)]),
        drive_files={m["path"]: m["serial"]}, scripts={m["path"]: m["sql"]}, file_hashes={m["path"]: "ab" * 32},
        variables={m["user"]: m["mail"]},
    )  # fmt: skip


def trial(block, place, treatment):
    """Return a trial with a marker in every text."""
    m = MARKERS
    like = observing(build(1)).trials[0]
    cut = Cut(
        "c1",
        "power",
        "ack",
        "prefix",
        1,
        1.0,
        "tail",
        10,
        lost=1,
        cause=m["path"],
        kept=m["user"],
        kept_sha256="ab" * 32,
    )
    observed = {
        **{layer: planted(values) for layer, values in like.observed.items()},
        m["host"]: {m["path"]: m["serial"]},
        f"device of {m['disk']}": {"model": m["drive"], "serial": "buffer"},
        "device": {"source": m["path"]},
    }
    load = planted({
        "kind": "script", "server_version": "x", "errors": [{"code": 1213, "text": "x", "count": 1}],
        "operations": {m["sql"]: {"count": 1, "mean": 2.0}}, "client_hosts": [{"host": "x", "clients": 1}],
        "beside": {m["load"]: {"kind": "x", "program": "x", "version": "x", "figures": {}}}, "clock": {"source": "x"},
    }, keys=False)  # fmt: skip
    return Trial(
        id=f"b{block}a1p{place}", block=block, attempt=1, position=place, treatment=treatment,
        started_at=f"{m['user']} at noon", metrics={"queries_per_second": 100.0 + place, m["variable"]: 1.0},
        observed=observed, load=load, probes={m["load"]: {"samples": 1}},
        device={"lateness_ns": {m["user"]: 1.0}, "named": {m["disk"]: {}}},
        seconds={f"raise {m['disk']}": 1.0}, disturbance={"beyond": ["foreign_cpu"], "others": {m["user"]: 0.5}},
        block_trace={"device": m["path"], "source": m["host"], "none": m["sql"]},
        smart={m["disk"]: {"before": m["serial"], "after": {m["serial"]: 1.0}}},
        image=m["user"], image_sha256="cd" * 32, awake={"by": m["user"], "cpus": "0-1"},
        server_variables={m["variable"]: "1", "datadir": m["path"], "report_host": m["host"], "sync_binlog": "1"},
        cuts=[cut], host=m["host"],
    )  # fmt: skip


@pytest.fixture
def marked(tmp_path):
    """Return a run folder that holds the markers wherever a text can be, in files of every kind."""
    path, m = tmp_path / "marked", MARKERS
    text = json.dumps(MARKERS)
    with patch.object(os, "fsync", lambda _: None):
        folder = create(
            path,
            header(),
            planted({"cpu": {"model": "x"}, "disks": {"sda": {"serial": "x"}}, "cores": 2, "kernel": {"release": "x"}}),
            f"# {text}\n",
        )
        for event in (
            Planned(2),
            Joined(m["host"], planted({"cpu": {"model": "x"}}), {m["user"]: m["path"]}),
            Note(m["sql"]),
            Note(m["host"], 2),
        ):
            folder.append(event)
        for block, place, treatment in ((1, 1, "t1"), (1, 2, "t2"), (1, 3, "control")):
            done = trial(block, place, treatment)
            at = folder.trial_folder(done.id)
            for name in ("server.log", "tool.out", "load.json", "latency.hlog", "requests.blkparse"):
                (at / name).write_text(text)
            folder.append(Started(done.id, block, 1, treatment, host=m["host"]))
            phases = {"phase": [m["load"], m["sql"]], m["user"]: [1.0, 2.0]}
            series = {
                "load": {"t_s": [1.0, 2.0], "queries_per_second": [1.0, 2.0], **phases},
                f"block_device_{m['disk']}": {"t_s": [1.0], "r/s": [2.0], m["serial"]: [1.0]},
                m["load"]: {"t_s": [1.0]},
            }
            folder.finish(done, series)
        folder.append(Failed("b2a1p1", 2, 1, "t1", m["sql"], host=m["host"]))
        folder.append(Lost("b2a1p2", 2, 1, "t2", m["path"], host=m["host"]))
        folder.append(Dropped("t2", m["mail"]))
        folder.append(Ended("done", "blocks"))
        folder.close()
    (path / "report.html").write_text(text)
    (path / "trials" / m["user"]).mkdir()
    return path


@pytest.fixture(scope="session")
def plain_run():
    """Return a run as the report's tests have it: two drives, two schedulers, eight blocks."""
    run = observing(build())
    return replace(run, notes=[*run.notes, "of jdoe"])


@pytest.fixture
def plain(plain_run, tmp_path):
    """Return the run folder of it, with series and latencies."""
    series = series_of(plain_run)
    for id_, met in latencies_of(plain_run).items():
        series[id_]["latency"] = {"latency_ns": met.latency_ns, "count": met.count}
    return written(tmp_path / "plain", plain_run, series)


@pytest.fixture
def shared(plain, tmp_path):
    """Return a file that was exported of it."""
    with patch.object(os, "fsync", lambda _: None):
        copied = copy_without_names(plain, tmp_path / "copy", title="SSD or HDD")
    file = tmp_path / "shared.tar.gz"
    file.write_bytes(pack(tmp_path / "copy", About(title=copied.title)))
    return file
