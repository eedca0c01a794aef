"""The replica of each treatment: how long commits waited for it, and how far it was behind."""

from dbdyno.analysis.replicas import ReplicaSummary
from dbdyno.model.wording import number_or_dash
from dbdyno.report.document import Abridged, Paragraph, Section, Table
from dbdyno.report.source import Source, finite_fields

TITLE = "Replica"
_HEADINGS = ("treatment", "replica", "disk", "trials", "commit waits ms", "lag ms", "lag max ms", "catch-up ms")
NOTE = (
    "'Commit waits' is how long the source waited for the replica's word, by its own account, warm-up included. 'Lag'"
    " is how long ago the source had written what the replica had applied last, at each tenth of a second of the"
    " measured load. 'Catch-up' is the time from the end of the load until the replica had applied all. Source and"
    " replica share one host; the only network between them is server.replica.round_trip."
)


def section(source: Source) -> Section | None:
    """Return a row for each treatment with a replica; None where none has one."""
    replicas = source.analysis.replicas
    if not replicas:
        return None
    table = Table("What replicas did", _HEADINGS, tuple(_row(replica) for replica in replicas), words=(1, 2))
    data = {"replicas": [finite_fields(replica) for replica in replicas]}
    return Section("replica", TITLE, (table, Abridged((Paragraph(NOTE, "soft"),))), data=data)


def _row(replica: ReplicaSummary) -> tuple[str, ...]:
    figures = (replica.wait_ms_mean, replica.lag_ms_mean, replica.lag_ms_max, replica.catch_up_ms_mean)
    return replica.label, replica.mode, replica.disk, str(replica.trials), *map(number_or_dash, figures)
