"""The report of one run: its sections in order, which is the order of every format."""

from collections.abc import Callable, Mapping

from dbdyno.analysis.analyse import Analysis
from dbdyno.report.document import FIGURES_MAX, Document, Paragraph, Section
from dbdyno.report.sections import (
    about,
    advice,
    badges,
    beside,
    block_layer,
    client_hosts,
    cluster,
    cost,
    factors,
    fleet,
    headline,
    heat_map,
    interference,
    noise_floor,
    over_time,
    profile,
    query_costs,
    ranking,
    replica,
    reported,
    results,
    safety,
    server_defaults,
    stability,
    stopped,
    thresholds,
    verdicts,
    versions,
    warnings,
)
from dbdyno.report.source import CrashRunBeside, Series, Source
from dbdyno.store.profiles import Profile
from dbdyno.store.records import Run

SECTIONS: tuple[Callable[[Source], Section | None], ...] = (
    headline.section,
    advice.section,
    thresholds.section,
    badges.section,
    headline.hero_section,
    safety.section,
    heat_map.section,
    verdicts.comparisons_section,
    server_defaults.section,
    warnings.section,
    about.about_section,
    verdicts.verdicts_section,
    versions.section,
    fleet.section,
    stopped.section,
    factors.curve_section,
    results.results_section,
    results.latencies_section,
    results.cells_section,
    results.tool_figures_section,
    verdicts.time_parts_section,
    query_costs.section,
    profile.section,
    client_hosts.section,
    beside.section,
    replica.section,
    cluster.section,
    cost.section,
    over_time.steadiness_section,
    reported.section,
    factors.section,
    ranking.section,
    verdicts.secondary_section,
    verdicts.every_pair_section,
    noise_floor.section,
    stability.section,
    block_layer.section,
    over_time.over_time_section,
    over_time.run_order_section,
    results.failures_section,
    interference.section,
    warnings.notes_section,
    about.observed_section,
    about.how_to_read_section,
    about.reproduce_section,
    about.seed_section,
)


def document(
    run: Run,
    analysis: Analysis,
    series: Series | None = None,
    *,
    beside: CrashRunBeside | None = None,
    profiles: Mapping[str, Profile] | None = None,
) -> Document:
    """Return the whole report of a run; without ``series`` there are no charts over time.

    ``beside`` is what a crash run of the same treatments showed; ``profiles`` are those of the server, by treatment.
    """
    source = Source(run, analysis, series or {}, beside, profiles or {})
    sections = tuple(section for build in SECTIONS if (section := build(source)) is not None)
    question = (Paragraph(run.question, "question"),) if run.question else ()
    return Document(run.title, question, sections, _values(source), tuple(headline.figures(source))[:FIGURES_MAX])


def _values(source: Source) -> dict[str, object]:
    """Return what programs read of the run as a whole."""
    run, analysis = source.run, source.analysis
    return {
        "study": run.title,
        "question": run.question,
        "scale": run.scale or None,
        "seed": run.design.seed,
        "settle": run.design.settle or None,
        "ended": run.ended,
        "simulated": run.is_simulated,
        "measured_here": not run.imported,
        "metric": analysis.metric.name,
        "more_is_better": analysis.metric.more_is_better,
        "margin": analysis.margin,
        "blocks_planned": run.design.blocks,
        "blocks_usable": len(analysis.blocks.trials),
    }
