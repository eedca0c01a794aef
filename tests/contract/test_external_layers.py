"""The layers of an external server keep the contract: raised, read back, lowered whatever happened above."""

import pytest

from dbdyno.errors import HostError, TrialError
from dbdyno.servers.mysql.external import address_of
from dbdyno.stack.layer import raised
from dbdyno.stack.layers.device import NoDevice
from dbdyno.stack.layers.external_server import ExternalData, ExternalDatabase, ExternalServerLayer
from dbdyno.stack.layers.scratch import scratch
from dbdyno.study.workloads import SlapSection
from dbdyno.workload.mysqlslap import Slap
from tests.external_server import DATABASE, PASSWORD, running_server

pytestmark = pytest.mark.host
SETTINGS = {
    "max_connections": 99,
    "innodb_buffer_pool_size": "64M",
    "long_query_time": 2.5,
    "innodb_adaptive_flushing": 0,
}


@pytest.fixture(scope="module")
def server():
    with running_server() as one:
        yield one


@pytest.fixture
def url(server, monkeypatch):
    monkeypatch.setenv("DBDYNO_PASSWORD", PASSWORD)
    return server.url(by="socket")


@pytest.fixture
def database(url, journal):
    with ExternalDatabase(url, None, journal).taken() as lent:
        yield lent


def stack(url, database, *, only_read=False, settings=SETTINGS, engine="innodb"):
    slap = Slap(SlapSection(kind="slap", queries=10), engine, DATABASE)
    data = ExternalData(database, f"a key of {engine}", slap.prepare, only_read=only_read)
    return [NoDevice("unknown"), ExternalServerLayer(url, None, settings, engine), data]


def values(server):
    return {name: server.variable(name) for name in SETTINGS}


def test_raised_observed_lowered_and_raised_again(server, url, database, journal):
    before = values(server)
    for _ in range(2):
        with scratch(journal) as ground, raised(stack(url, database), ground) as stand:
            told = stand.observed["server"]
            assert told["max_connections"] == "99"
            assert told["innodb_buffer_pool_size"] == str(64 * 1024**2)
            assert float(told["long_query_time"]) == 2.5
            assert told["innodb_adaptive_flushing"] == "OFF"
            assert stand.endpoint.pid == server.process.pid
            assert stand.endpoint.address == address_of(url, None)
            assert sorted(server.tables()) == ["dbdyno_run", "t1"]
            assert stand.observed["device"] == {"kind": "unknown"}
        assert values(server) == before


def test_lowered_after_a_failure_above(server, url, database, journal):
    before = values(server)
    with (
        pytest.raises(TrialError, match=r"^above$"),
        scratch(journal) as ground,
        raised(stack(url, database), ground),
    ):
        raise TrialError("above")
    assert values(server) == before


def test_a_setting_that_did_not_take_fails_and_what_was_set_before_it_is_put_back(server, url, database, journal):
    before = values(server)
    asked = {**SETTINGS, "max_connect_errors": 0}  # at least 1
    with (
        pytest.raises(TrialError, match="max_connect_errors: asked for 0, the server took 1"),
        scratch(journal) as ground,
        raised(stack(url, database, settings=asked), ground),
    ):
        pass
    assert values(server) == before


def test_data_is_kept_for_loads_that_only_read_and_loaded_anew_for_others(server, url, database, journal):
    def made(engine, *, only_read):
        with scratch(journal) as ground, raised(stack(url, database, only_read=only_read, engine=engine), ground):
            server.ask("INSERT INTO lent.t1 SELECT * FROM lent.t1 LIMIT 1")  # shows whether it is the same table
            return server.ask("SELECT COUNT(*) FROM lent.t1")[0][0]

    fresh = made("innodb", only_read=True)
    assert [made("innodb", only_read=True) for _ in range(2)] == [fresh + 1, fresh + 2]
    assert made("myisam", only_read=True) == fresh  # other data
    assert [made("innodb", only_read=False) for _ in range(2)] == [fresh, fresh]
    assert made("innodb", only_read=True) == fresh  # what a load that writes has left is nobody's start


def test_what_is_in_the_database_at_the_end_and_is_not_ours_stays(server, url, journal):
    try:
        with (
            ExternalDatabase(url, None, journal).taken() as lent,
            scratch(journal) as ground,
            raised(stack(url, lent), ground),
        ):
            server.ask(f"CREATE TABLE {DATABASE}.precious (a INT)")
        assert server.tables() == ["precious"]
        with (
            pytest.raises(HostError, match="holds the table precious, which dbdyno did not make"),
            ExternalDatabase(url, None, journal).taken(),
        ):
            pass
        assert server.tables() == ["precious"]
    finally:
        server.ask(f"DROP TABLE {DATABASE}.precious")


def test_a_database_that_is_held_is_refused(url, database, journal):
    with (
        pytest.raises(HostError, match=f"another dbdyno works in the database {DATABASE}"),
        ExternalDatabase(url, None, journal).taken(),
    ):
        pass
    assert database
