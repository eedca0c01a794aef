"""The cluster of each treatment: its write sets, how long all nodes took to have them, and how far they were behind."""

import math

from dbdyno.analysis.replicas import ClusterSummary
from dbdyno.model.wording import number_or_dash, percent
from dbdyno.mysql.durability import wait_in_cluster
from dbdyno.report.document import Abridged, Paragraph, Section, Table
from dbdyno.report.source import Source, finite_fields

TITLE = "Cluster"
_HEADINGS = ("treatment", "nodes", "trials", "write sets/s", "ordering ms", "paused", "queue", "failed", "catch-up ms")
NOTE = (
    "The first node alone has the load, and the write sets are its own. 'Ordering' is the time until all nodes have"
    " one, 'paused' the share of the time in which a node that fell behind had all others wait, 'queue' the write sets"
    " that wait on the node where they are most, 'failed' those that certification refused. 'Catch-up' is the time from"
    " the end of the load until all nodes had applied all. The nodes share one host; the only network between them is"
    " server.cluster.round_trip."
)


def section(source: Source) -> Section | None:
    """Return a row for each treatment with a cluster; None where none has one."""
    clusters = source.analysis.clusters
    if not clusters:
        return None
    table = Table("What clusters did", _HEADINGS, tuple(_row(cluster) for cluster in clusters))
    sizes = dict.fromkeys(cluster.nodes for cluster in clusters)
    waits = tuple(Paragraph(wait_in_cluster(nodes)) for nodes in sizes if nodes not in {"", "1"})
    data = {"clusters": [finite_fields(cluster) for cluster in clusters]}
    return Section("cluster", TITLE, (table, *waits, Abridged((Paragraph(NOTE, "soft"),))), data=data)


def _row(cluster: ClusterSummary) -> tuple[str, ...]:
    share = cluster.flow_control_paused_ratio
    return (
        cluster.label,
        cluster.nodes,
        str(cluster.trials),
        number_or_dash(cluster.commits_per_second),
        number_or_dash(cluster.ordering_ms_mean),
        percent(share, sign=False) if math.isfinite(share) else "-",
        number_or_dash(cluster.receive_queue_mean),
        number_or_dash(cluster.certification_failures),
        number_or_dash(cluster.catch_up_ms_mean),
    )
