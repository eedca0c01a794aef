"""Which workload a treatment is offered."""

from dbdyno.study.schema import TrialSpec
from dbdyno.study.workloads import (
    BulkSection,
    IngestSection,
    OltpSection,
    ScriptSection,
    SlapSection,
    SmackSection,
)
from dbdyno.workload.bulk import Bulk
from dbdyno.workload.ingest import Ingest
from dbdyno.workload.oltp import Oltp
from dbdyno.workload.script import Script
from dbdyno.workload.slap import Slap
from dbdyno.workload.smack import Smack
from dbdyno.workload.workload import Workload


def workload_of(spec: TrialSpec) -> Workload:
    """The workload of a treatment, by its kind."""
    load, engine = spec.workload, spec.stack.engine
    match load:
        case SlapSection():
            return Slap(load, engine)
        case SmackSection():
            return Smack(load, engine)
        case OltpSection():
            return Oltp(load, engine)
        case IngestSection():
            return Ingest(load, engine)
        case BulkSection():
            return Bulk(load, engine)
        case ScriptSection():
            return Script(load, engine)
