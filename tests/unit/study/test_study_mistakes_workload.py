"""Mistakes in the load."""

import pytest

from dbdyno.study import workloads
from dbdyno.study.workloads import BulkSection, SlapSection, SmackSection
from tests.unit.study.conftest import fields, refusal

KINDS = ", ".join(workloads.KINDS)
CODES = 'error codes as one text, such as "1213,1205", or "all" or "none"'
SLAP = fields(SlapSection)

# What is changed in the study; the messages, each after the study's path.
MISTAKES = {
    "text for a number": (
        [("clients = 10", 'clients = "ten"')],
        [':17: workload.clients: is "ten" but must be a whole number'],
    ),
    "a part for a whole number": (
        [("clients = 10", "clients = 1.5")],
        [":17: workload.clients: is 1.5 but must be a whole number"],
    ),
    "true for a number": (
        [("clients = 10", "clients = true")],
        [":17: workload.clients: is true but must be a whole number"],
    ),
    "missing section": (
        [('[workload]\nkind = "slap"\nclients = 10\nqueries = 1000\n', "")],
        [": workload: is missing; a study needs [workload]"],
    ),
    "key load without a key": (
        [("clients = 10", 'load = "key"')],
        [
            (
                ':17: workload.load: is "key", which reads by primary key: set workload.autoincrement or guid_primary '
                "to true"
            )
        ],
    ),
    "two keys": (
        [("clients = 10", "autoincrement = true\nguid_primary = true")],
        [":18: workload.guid_primary: and autoincrement are two keys for the same table; give one"],
    ),
    "no column": (
        [("clients = 10", "int_cols = 0\nchar_cols = 0")],
        [":17: workload.int_cols: and char_cols are both 0; a table needs a column"],
    ),
    "a kind that is none": (
        [('kind = "slap"', 'kind = "olpt"')],
        [f':16: workload.kind: is "olpt"; allowed are {KINDS}. Did you mean "oltp"?'],
    ),
    "no kind": ([('kind = "slap"\n', "")], [f":15: workload.kind: is missing; allowed are {KINDS}"]),
    "a number for a kind": ([('"slap"', "5")], [f":16: workload.kind: is 5; allowed are {KINDS}"]),
    "a kind as a factor": (
        [('"slap"', '["slap", "oltp"]')],
        [
            (
                ":16: workload.kind: can't be a factor: it decides which fields the section has; "
                "write a study for each kind, or run one beside the other by [[workload.beside]]"
            )
        ],
    ),
    "a backup as a kind": (
        [('"slap"', '["slap", "dump"]')],
        [
            (
                ":16: workload.kind: can't be a factor: it decides which fields the section has; write a study for "
                'each kind, or run one beside the other: in [workload] give kind = "slap" and the line '
                'beside = [{ name = "backup", kind = ["none", "dump"], start = "2s" }]'
            )
        ],
    ),
    "a field of another kind": (
        [("clients = 10", "clients = 10\ntables = 4")],
        [f":18: workload.tables: is unknown here; known are {SLAP}. It is for kind oltp, bulk, sysbench, dump"],
    ),
    "a field of no kind": (
        [("clients = 10", "client = 10")],
        [f':17: workload.client: is unknown here; known are {SLAP}. Did you mean "clients"?'],
    ),
    "a value of one kind": (
        [('"slap"', '"smack"'), ("queries = 1000", 'load = "selekt"\nevents = 1000')],
        [
            (
                ':18: workload.load: is "selekt"; allowed are insert, select, update, delete, mixed. '
                'Did you mean "select"?'
            )
        ],
    ),
    "queries where events count": (
        [('"slap"', '"smack"')],
        [f":18: workload.queries: is unknown here; known are {fields(SmackSection)}. It is for kind slap, mysqlslap"],
    ),
    "error codes as a list": (
        [("clients = 10", "ignore_errors = [1213, 1205]")],
        [f":17: workload.ignore_errors: is {code}, which must be {CODES}" for code in (1213, 1205)],
    ),
    "an error by name": (
        [("clients = 10", 'ignore_errors = "deadlock"')],
        [f':17: workload.ignore_errors: is "deadlock", which must be {CODES}'],
    ),
    "a code that no server has": (
        [("clients = 10", 'ignore_errors = "99999"')],
        [f':17: workload.ignore_errors: is "99999", which must be {CODES}'],
    ),
    "a rate that is no number": (
        [("clients = 10", "rate = nan")],
        [":17: workload.rate: is nan but must be a number"],
    ),
    "a rate below nothing": ([("clients = 10", "rate = -1")], [":17: workload.rate: is -1; it must be at least 0"]),
    "a rate in words": ([("clients = 10", 'rate = "1k"')], [':17: workload.rate: is "1k" but must be a number']),
    "thinking in an open loop": (
        [("clients = 10", 'rate = 100\nthink_time = "1s"')],
        [
            (
                ":18: workload.think_time: can't be set with a rate: in an open loop an event starts when it is due, "
                "and no client thinks"
            )
        ],
    ),
    "arrivals of a closed loop": (
        [("clients = 10", 'arrivals = "fixed"')],
        [":17: workload.arrivals: has no effect without workload.rate; give it too"],
    ),
    "a distribution of no pause": (
        [("clients = 10", 'think_distribution = "fixed"')],
        [":17: workload.think_distribution: has no effect without workload.think_time; give it too"],
    ),
    "more threads than clients": (
        [("clients = 10", "io_threads = 2")],
        [":17: workload.io_threads: is 2, more than there are clients (1)"],
    ),
    "clients beside terminals": (
        [('"slap"', '"tpcc"'), ("queries = 1000", "events = 1000\nkeying = true")],
        [":17: workload.clients: is 10; with keying there are 10, 10 for each warehouse: leave it out"],
    ),
    "a rate of terminals": (
        [('"slap"', '"tpcc"'), ("clients = 10", "rate = 10"), ("queries = 1000", "events = 1000\nkeying = true")],
        [":17: workload.rate: can't be set with keying: terminals have times of their own"],
    ),
    "a mix that is none": (
        [('"slap"', '"tpcc"'), ("queries = 1000", 'events = 1000\nmix = "new_order:45"')],
        [(':19: workload.mix: is "new_order:45", which must be names with weights, such as "new_order=45,payment=43"')],
    ),
    "a bulk load for a time": (
        [('"slap"', '"bulk"'), ("queries = 1000", 'duration = "5s"')],
        [
            (
                f":18: workload.duration: is unknown here; known are {fields(BulkSection)}. "
                "It is for kind slap, smack, oltp, tpcc, ledger, ingest, script, replay-log, fio, sysbench, trace"
            )
        ],
    ),
    "more clients than tables to fill": (
        [('"slap"', '"bulk"'), ("queries = 1000", "tables = 4")],
        [":17: workload.clients: is 10, more than there are tables (4): each table is filled by one client"],
    ),
    "commits rarer than calls": (
        [('"slap"', '"ingest"'), ("queries = 1000", "rows = 1000\nrows_per_commit = 5000")],
        [":19: workload.rows_per_commit: is 5000, more than rows_per_call (1000): a CALL commits at its end"],
    ),
    "commits in the middle of a statement": (
        [
            ('"slap"', '"ingest"\nmode = "statement"'),
            ("queries = 1000", "rows = 1000\nrows_per_insert = 4\nrows_per_commit = 6"),
        ],
        [":21: workload.rows_per_commit: is 6; give a multiple of rows_per_insert (4)"],
    ),
    "weights that are none": (
        [('"slap"', '"script"\nfile = "x.sql"'), ("queries = 1000", 'events = 1000\nweights = "buy"')],
        [':20: workload.weights: is "buy", which must be names with values, such as "buy=3,look=7"'],
    ),
    "ingest of rows for a time": (
        [('"slap"', '"ingest"'), ("queries = 1000", 'rows = 1000\nduration = "5s"')],
        [":18: workload.rows: and duration are both given; give one of them"],
    ),
    "queries and a duration": (
        [("clients = 10", 'duration = "5s"')],
        [":18: workload.queries: and duration are both given; give one of them"],
    ),
    "neither queries nor a duration": (
        [("queries = 1000\n", "")],
        [":15: workload: has neither queries nor duration; give one of them"],
    ),
    "fewer queries than clients": (
        [("clients = 10", "clients = [10, 1001]")],
        [":18: workload.queries: is 1000, fewer than one for each of 1001 clients"],
    ),
    "a time too short": (
        [("queries = 1000", 'duration = "5ms"')],
        [':18: workload.duration: is "5ms"; it must be at least 0.1 s'],
    ),
}


@pytest.mark.parametrize(("changes", "messages"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named(write_study, changes, messages):
    path = write_study(*changes)
    assert refusal(path) == "\n".join(f"{path}{message}" for message in messages)
