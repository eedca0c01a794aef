"""Import: a file of anybody's becomes a run folder of ours, or one sentence says why not."""

import gzip
import io
import json
import tarfile
from dataclasses import replace

import pytest

from dbdyno.errors import UserError
from dbdyno.plan.plan import Plan
from dbdyno.run.execute import see_that_it_is_the_same
from dbdyno.share import archive
from dbdyno.share.archive import unpacked
from dbdyno.share.copy import copy_without_names
from dbdyno.store.run_folder import read_run
from tests.run_folders import written
from tests.unit.report.conftest import build


def tar_of(*members):
    """Return a compressed tar file of (name, content or a changed header)."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name, content in members:
            about = tarfile.TarInfo(name)
            if isinstance(content, dict):
                for key, value in content.items():
                    setattr(about, key, value)
                tar.addfile(about)
            else:
                about.size = len(content)
                tar.addfile(about, io.BytesIO(content))
    return packed.getvalue()


ABOUT = ("export.json", json.dumps({"format": 1, "title": "a"}).encode())
LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}
HOSTILE = {
    "a link": (tar_of(ABOUT, ("run/run.toml", LINK)), "neither a file nor a folder"),
    "a hard link": (tar_of(ABOUT, ("run/run.toml", {**LINK, "type": tarfile.LNKTYPE})), "neither a file nor a folder"),
    "a device": (tar_of(ABOUT, ("run/run.toml", {"type": tarfile.CHRTYPE})), "neither a file nor a folder"),
    "a pipe": (tar_of(ABOUT, ("run/run.toml", {"type": tarfile.FIFOTYPE})), "neither a file nor a folder"),
    "a way out": (tar_of(ABOUT, ("run/../../evil", b"x")), "is not allowed"),
    "an absolute name": (tar_of(ABOUT, ("/etc/evil", b"x")), "is not allowed"),
    "another file": (tar_of(ABOUT, ("run/study.toml", b"x")), "is not allowed"),
    "a hidden file": (tar_of(ABOUT, ("run/trials/.x/trial.json", b"x")), "is not allowed"),
    "a name twice": (tar_of(ABOUT, ("run/run.toml", b"x"), ("run/run.toml", b"y")), "is there already"),
    "a large file": (tar_of(ABOUT, ("export2.json", b"x"), ("export.json", b"x" * 10**5)), "is not allowed"),
    "too large a list": (tar_of(("export.json", b" " * 10**5)), "has 100000 bytes, of at most 65536"),
    "a bomb": (gzip.compress(bytes(300 << 20)), "times as large"),
    "a bomb in a file": (tar_of(ABOUT, ("run/run.toml", bytes(8 << 20))), "times as large"),
    "no gzip": (b"PK\x03\x04", "not compressed by gzip"),
    "nothing": (b"", "cut short"),
    "half of it": (tar_of(ABOUT)[:60], "cut short"),
    "more behind it": (tar_of(ABOUT) + b"more", "something follows its end"),
    "no tar file": (gzip.compress(b"x" * 600), "not a tar file"),
    "nothing in it": (tar_of(), "it holds no export.json"),
    "no object": (tar_of(("export.json", b"[]")), "it is not a JSON object"),
    "a newer format": (tar_of(("export.json", b'{"format": 2}')), "is of format 2"),
    "another type": (tar_of(("export.json", b'{"title": 3}')), "title is not text"),
    "control characters": (tar_of(("export.json", b'{"title": "\\u001b[2J"}')), "is not one printable line"),
    "a long title": (tar_of(("export.json", json.dumps({"title": "a" * 200}).encode())), "more than 120 characters"),
    "a huge number": (tar_of(("export.json", b'{"format": 1' + b"0" * 5000 + b"}")), "too many digits"),
    "too many words": (tar_of(("export.json", json.dumps({"allowed": ["a"] * 51}).encode())), "more than 50 texts"),
    "no run": (tar_of(ABOUT), "holds no run.toml"),
    "no header": (tar_of(ABOUT, ("run/run.toml", b"format = 1"), ("run/host.json", b"{}")), "run is missing"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_sentence(dbdyno, tmp_path, name):
    content, why = HOSTILE[name]
    file = tmp_path / "hostile.tar.gz"
    file.write_bytes(content)
    code, out, err = dbdyno("import", file, "--into", tmp_path / "into")
    assert (code, out) == (2, "")
    assert err.startswith(f"dbdyno: {file}: ")
    assert why in err
    assert err.count("\n") == 1
    assert "\x1b" not in err
    assert {path.name for path in tmp_path.iterdir()} <= {"hostile.tar.gz", "state"}


def test_bytes_are_bounded_before_they_are_unpacked(monkeypatch, shared):
    monkeypatch.setattr(archive, "PACKED_BYTES_MAX", 1000)
    with pytest.raises(UserError, match="more than 0 MiB"), unpacked(shared):
        pass
    monkeypatch.setattr(archive, "PACKED_BYTES_MAX", 1 << 30)
    monkeypatch.setattr(archive, "UNPACKED_BYTES_MAX", 1000)
    with pytest.raises(UserError, match="unpacked it has more than"), unpacked(shared):
        pass


def rewritten(file, into, change):
    """Write the file anew, each member's content changed by ``change(name, content)``."""
    with tarfile.open(file) as tar:
        members = [
            (member.name, tar.extractfile(member).read() if member.isfile() else {"type": tarfile.DIRTYPE})
            for member in tar
        ]
    into.write_bytes(
        tar_of(*((name, change(name, content) if isinstance(content, bytes) else content) for name, content in members))
    )
    return into


CHANGED = [
    ("trial.json", b'"position": 1', b'"position": "x"', "trial.json: is damaged"),
    ("trial.json", b'"queries_per_second": ', b'"queries_per_second": 1e999, "x": ', "trial.json: is damaged"),
    ("journal.jsonl", b'"finished"', b'"finishes"', "journal.jsonl:3: not a line of the event log"),
    ("run.toml", b"blocks = 8", b"blocks = 99999999", "run.toml: is damaged"),
    ("run.toml", b"margin = 0.03", b"margin = nan", "run.toml: is damaged"),
    ("load.parquet", b"PAR1", b"PAR9", "load.parquet: is damaged"),
]


@pytest.mark.parametrize("change", CHANGED, ids=lambda change: f"{change[0]} {change[1].decode()}")
def test_what_was_changed_on_the_way_is_refused(dbdyno, shared, tmp_path, change):
    suffix, old, new, why = change

    def changed(name, content):
        return content.replace(old, new) if name.endswith(suffix) else content

    file = rewritten(shared, tmp_path / "changed.tar.gz", changed)
    code, out, err = dbdyno("import", file, "--into", tmp_path / "into")
    assert (code, out) == (2, "")
    assert why in err
    assert err.count("\n") == 1
    assert not (tmp_path / "into").exists()


def test_names_and_control_characters_that_a_sender_planted_do_not_arrive(dbdyno, shared, tmp_path):
    """Where the sender made the checksums anew: what arrives is written by us, of known words."""

    def without_sums(name, content):
        if name.endswith("journal.jsonl"):
            events = [json.loads(line) for line in content.splitlines()]
            kept = [{key: value for key, value in event.items() if key not in {"sum", "sha256"}} for event in events]
            return b"".join(json.dumps(event).encode() + b"\n" for event in kept)
        return content.replace(b"mq-deadline", b"\\u001b[2Jevil") if name.endswith("trial.json") else content

    file = rewritten(shared, tmp_path / "planted.tar.gz", without_sums)
    code, _, err = dbdyno("import", file, "--into", tmp_path / "into")
    assert (code, err) == (0, "")
    everything = b"".join(path.read_bytes() for path in (tmp_path / "into").rglob("*") if path.is_file())
    assert b"evil" not in everything
    assert b"\\u001b" not in everything


def test_an_imported_run_says_that_it_was_not_measured_here(dbdyno, shared, tmp_path):
    into = tmp_path / "runs" / "imported"
    code, out, err = dbdyno("import", shared, "--into", into, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "schema": 1,
        "folder": str(into),
        "title": "SSD or HDD",
        "trials": 35,
        "measured_here": False,
    }
    assert read_run(into).imported
    _, out, _ = dbdyno("report", into, "--html", tmp_path / "page.html")
    assert "not measured here" in out
    assert (tmp_path / "page.html").read_text().count(">not measured here<") == 1
    assert json.loads(dbdyno("report", into, "--json")[1])["measured_here"] is False
    assert "not measured here" in dbdyno("runs", into.parent)[1]
    assert json.loads(dbdyno("runs", into.parent, "--json")[1])[0]["measured_here"] is False
    code, _, err = dbdyno("import", shared, "--into", into)
    assert (code, err.endswith("is not empty; name a new folder\n")) == (2, True)


def test_an_imported_run_is_not_gone_on_with(shared, tmp_path):
    with unpacked(shared) as (folder, _):
        copy_without_names(folder, tmp_path / "into")
    with pytest.raises(UserError, match="was measured elsewhere and imported"):
        see_that_it_is_the_same(Plan.__new__(Plan), tmp_path / "into")


def shared_and_imported(dbdyno, folder, into):
    packed = into.parent / f"{into.name}.tar.gz"
    assert dbdyno("export", folder, "--output", packed, "--yes")[0] == 0
    assert dbdyno("import", packed, "--into", into)[0] == 0
    return into


def test_a_run_differs_in_nothing_from_the_import_of_its_own_export(dbdyno, tmp_path):
    host = {"cpu": {"model": "AMD EPYC", "microcode": "0x1"}, "kernel": {"release": "6.18.44-acme-7", "build": "#1 x"}}
    host["disks"] = {"vda": {"vendor": "acme", "serial": "S1"}}
    made = replace(build(8), versions={"kernel": "6.18.44-acme-7", "dbdyno": "1.0.0"}, host=host)
    variables = {"basedir": "/opt/acme", "innodb_log_group_home_dir": "/srv/acme", "innodb_io_capacity": "200"}
    trials = [replace(trial, server_variables=variables) for trial in made.trials]
    own = written(tmp_path / "own", replace(made, trials=trials))
    imported = shared_and_imported(dbdyno, own, tmp_path / "imported")
    assert json.loads((imported / "host.json").read_text())["kernel"]["release"] == "6.18.44"
    for pair in ((own, imported), (imported, own)):
        code, out, _ = dbdyno("compare", *pair, "--json")
        assert (code, json.loads(out)["differences"]) == (0, [])
        assert "kernel" not in dbdyno("compare", *pair)[1]


def test_a_change_of_the_kernel_shows_in_a_comparison_with_an_imported_run_as_well(dbdyno, tmp_path):
    before = written(tmp_path / "before", replace(build(8), versions={"kernel": "6.12.1-acme-7"}))
    after = written(tmp_path / "after", replace(build(8), versions={"kernel": "6.18.44-acme-7"}))
    imported = shared_and_imported(dbdyno, after, tmp_path / "imported")
    out = dbdyno("compare", before, imported, "--json")[1]
    (difference,) = json.loads(out)["differences"]
    assert (difference["name"], difference["before"], difference["after"]) == ("kernel", "6.12.1-acme-7", "6.18.44")
