"""An external server, in a study: how it is named, and what can't be said of it."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.mysql.server_url import ServerUrl, server_url
from dbdyno.study.load import load_study

STUDY = """\
version = 1
[study]
title = "one that runs"
[stack]
server = "mysql://me@db1/bench"
{stack}
[server]
{server}
[server.settings]
innodb_io_capacity = [200, 2000]
[workload]
kind = "oltp"
events = 10
{more}
"""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("mysql://me@db1/bench", ServerUrl("me", "bench", "db1")),
        ("mariadb://me@[::1]:3307/bench", ServerUrl("me", "bench", "::1", 3307)),
        ("mysql://me@/bench?socket=/run/x.sock", ServerUrl("me", "bench", socket="/run/x.sock")),
        ("mysql://a%40b@db1/b%20c", ServerUrl("a@b", "b c", "db1")),
        ("mysql://me@db1/bench?ssl-mode=verify_ca&ssl-ca=/etc/ca.pem",
         ServerUrl("me", "bench", "db1", ssl_mode="verify_ca", ssl_ca="/etc/ca.pem")),
    ],
)  # fmt: skip
def test_a_server_is_named_by_a_url(text, parts):
    assert server_url(text) == parts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("postgres://me@db1/bench", "begins with postgres://"),
        ("mysql://db1/bench", "names no user"),
        ("mysql://me@db1", "names no database"),
        ("mysql://me@db1/a/b", "names no database"),
        ("mysql://me@db1/mysql", "which is the server's own"),
        ("mysql://me@/bench", "names no host"),
        ("mysql://me@db1/bench?socket=/x", "names a host and a socket"),
        ("mysql://me@/bench?socket=x.sock", "give an absolute one"),
        ("mysql://me@db1:0/bench", "has the port '0'"),
        ("mysql://me@db1:x/bench", "has the port 'x'"),
        ("mysql://me@db1/bench?ssl-mode=maybe", "allowed are disabled, preferred, required"),
        ("mysql://me@db1/bench?ssl-mode=verify_ca", "without ssl-ca"),
        ("mysql://me@db1/bench?timeout=3", "unknown, empty or given twice; known are socket, ssl-mode"),
        ("mysql://me@db1/bench?socket", "not name=value"),
        ("mysql://me@[db1/bench", "is not a URL"),
    ],
)
def test_what_is_no_such_url_is_refused_with_the_reason(text, said):
    with pytest.raises(ValueError, match=r".") as refused:
        server_url(text)
    assert said in str(refused.value)


@given(st.text(min_size=1), st.sampled_from(["mysql://me:{}@db1/bench", "mysql://me:{}@/b?socket=/x"]))
def test_a_password_is_in_no_message(secret, shape):
    secret = f"s3cret{secret}s3cret"
    with pytest.raises(ValueError, match=r".") as refused:
        server_url(shape.format(secret))
    assert "s3cret" not in str(refused.value)


@given(st.text())
def test_any_text_is_a_server_or_refused(text):
    with suppress(ValueError):
        assert server_url(text).user


def test_a_study_of_it_needs_no_device(study_file):
    loaded = load_study(study_file(STUDY.format(stack="", server='option_file = "pw.cnf"', more="")))
    specs = [spec for _, spec in loaded.combinations()]
    assert [spec.server.settings["innodb_io_capacity"] for spec in specs] == [200, 2000]
    assert {spec.server.option_file for spec in specs} == {str(loaded.path.parent.resolve() / "pw.cnf")}
    assert all((spec.stack.kind, spec.stack.model) == ("external", None) for spec in specs)


@pytest.mark.parametrize(
    ("where", "given", "place", "said"),
    [
        ("stack", 'device = "here"', ":6: stack.device:", "its storage is its own"),
        ("stack", 'filesystem = ["ext4", "xfs"]', ":6: stack.filesystem:", "its storage is its own"),
        ("stack", 'scheduler = "none"', ":6: stack.scheduler:", "its storage is its own"),
        ("stack", 'memory = "1GiB"', ":6: stack.memory:", "its memory limit is set where it was started"),
        ("stack", 'server_cpus = "0"', ":6: stack.server_cpus:", "bind that server yourself"),
        ("server", 'ionice = "idle"', ":8: server.ionice:", "given to it where it was started"),
        ("more", "[queue]\nnr_requests = 64", ":15: queue.nr_requests:", "does not touch the disks below it"),
        ("more", '[filesystem]\nmount = "noatime"', ":15: filesystem.mount:", "does not touch the disks below it"),
    ],
)
def test_what_it_was_started_with_or_stands_on_is_refused(study_file, where, given, place, said):
    fields = {"stack": "", "server": "", "more": "", where: given}
    with pytest.raises(UserError) as refused:
        load_study(study_file(STUDY.format(**fields)))
    (line,) = str(refused.value).splitlines()
    assert place in line
    assert "can't be set with an external server" in line
    assert said in line


def test_the_whole_server_is_given_to_a_script_alone(study_file, tmp_path):
    (tmp_path / "own.sql").write_text("DO 1;\n", encoding="utf-8")
    given = "whole_server_may_change = true"
    with pytest.raises(UserError, match=r":8: server.whole_server_may_change: is for the load script"):
        load_study(study_file(STUDY.format(stack="", server=given, more="")))
    script = STUDY.replace('"oltp"', '"script"\nfile = "own.sql"')
    for server, confined in ((given, False), ("", True)):
        loaded = load_study(study_file(script.format(stack="", server=server, more="")))
        assert {spec.is_confined for _, spec in loaded.combinations()} == {confined}
    own = script.replace("mysql://me@db1/bench", "mariadb").format(stack='device = "here"', server=given, more="")
    with pytest.raises(UserError, match=r"server.whole_server_may_change: is for an external server"):
        load_study(study_file(own))


def test_a_server_of_dbdynos_own_needs_a_device_and_has_no_password(study_file):
    text = STUDY.format(stack="", server='option_file = "pw.cnf"', more="").replace("mysql://me@db1/bench", "mariadb")
    with pytest.raises(UserError) as refused:
        load_study(study_file(text))
    said = str(refused.value)
    assert "stack.device: is missing" in said
    assert "server.option_file: is for an external server" in said
