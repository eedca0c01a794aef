"""The report for programs: the same bytes for the same run folder, wherever and whenever it is read."""

import json
from dataclasses import asdict
from typing import Any

from dbdyno.analysis.analyse import Analysis
from dbdyno.analysis.several import Several
from dbdyno.analysis.summary import TreatmentSummary
from dbdyno.analysis.verdict import Verdict
from dbdyno.report import factors
from dbdyno.report.aa import noise_floor_document
from dbdyno.report.block_layer import block_layer_json
from dbdyno.report.cost import cost_json
from dbdyno.report.disturbed import disturbed_json
from dbdyno.report.ranking import ranking_json
from dbdyno.report.reported import reported_json
from dbdyno.report.rounding import rounded
from dbdyno.report.screened import screened_json
from dbdyno.report.sentences import note_lines, remarks
from dbdyno.report.stability import stability_json
from dbdyno.report.steadiness import steadiness_json
from dbdyno.report.stopped import stopping
from dbdyno.report.tool_figures import figures_json
from dbdyno.report.why import why_json
from dbdyno.store.records import Run


def render(run: Run, analysis: Analysis) -> str:
    """Return the report as JSON. Differences are fractions (.03 for +3 %); what is unknown is null."""
    return _written(document(run, analysis))


def render_several(several: Several) -> str:
    """Return several runs as JSON: the ranking over them, and what each one's own report holds."""
    return _written(
        {
            "interleaved": False,  # with each other
            "ranking": ranking_json(several.ranking),
            "unranked": several.unranked or None,
            "runs": [{"name": one.name, **document(one.run, one.analysis)} for one in several.members],
        }
    )


def document(run: Run, analysis: Analysis) -> dict[str, Any]:
    """Return the report of a run as plain values."""
    return {
        "study": run.title,
        "question": run.question,
        "scale": run.scale or None,
        "seed": run.design.seed,
        "ended": run.ended,
        **stopping(run, analysis),
        "metric": analysis.metric.name,
        "more_is_better": analysis.metric.more_is_better,
        "margin": analysis.margin,
        "blocks_planned": run.design.blocks,
        "blocks_usable": len(analysis.blocks.trials),
        "verdicts": [verdict_json(verdict, analysis) for verdict in analysis.verdicts],
        "factors": factors.as_dict(run.design, analysis),
        "every_pair": [{**verdict_json(verdict, analysis), "planned": False} for verdict in analysis.every_pair],
        "screened": screened_json(analysis),
        "ranking": ranking_json(analysis.ranking),
        "treatments": [treatment_json(treatment, analysis) for treatment in analysis.treatments],
        "stability": stability_json(analysis),
        "figures": figures_json(analysis),
        "block_layer": block_layer_json(analysis),
        "why": why_json(analysis),
        "cost": cost_json(analysis),
        "steadiness": steadiness_json(analysis),
        "reported": reported_json(analysis),
        "aa": noise_floor_document(analysis),
        "failures": [
            {
                "trial": failure.id,
                "treatment": failure.treatment,
                "block": failure.block,
                "attempt": failure.attempt,
                "cause": failure.cause,
            }
            for failure in run.failures
        ],
        "disturbed": disturbed_json(run, analysis),
        "notes": note_lines(run, analysis),
        "versions": dict(sorted(run.versions.items())),
    }


def _written(document: dict[str, Any]) -> str:
    return json.dumps(rounded(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def verdict_json(verdict: Verdict, analysis: Analysis) -> dict[str, Any]:
    """Return a verdict as values; those that are unknown are not finite yet."""
    return {
        "metric": verdict.metric,
        "baseline": verdict.baseline,
        "level": verdict.level,
        "effect": verdict.effect.value,
        "low": verdict.effect.low,
        "high": verdict.effect.high,
        "p": verdict.p_adjusted,
        "p_unadjusted": verdict.p,
        "p_equivalence": verdict.p_equivalence,
        "verdict": verdict.verdict,
        "blocks": verdict.blocks,
        "reason": verdict.reason,
        "baseline_id": verdict.baseline_id,
        "level_id": verdict.level_id,
        "remarks": remarks(verdict, analysis),
    }


def treatment_json(row: TreatmentSummary, analysis: Analysis) -> dict[str, Any]:
    """Return a row of the table as values; those that are unknown are not finite yet."""
    return {
        "id": row.id,
        "label": row.label,
        "levels": row.levels,
        "baseline": row.is_baseline,
        "dropped": row.dropped,
        "trials": row.n,
        "failures": row.failures,
        "seconds_real_min": row.seconds_real_min,
        "seconds_real_mean": row.seconds_real_mean,
        "seconds_real_max": row.seconds_real_max,
        "seconds_user": row.seconds_user,
        "seconds_sys": row.seconds_sys,
        "metric_mean": row.metric_mean,
        "queries_per_second": row.queries_per_second,
        "events_per_second": row.events_per_second,
        "rows_per_second": row.rows_per_second,
        "latency_ms_p50": row.latency_ms_p50,
        "latency_ms_p95": row.latency_ms_p95,
        "latency_ms_p99": row.latency_ms_p99,
        "latency_ms_p999": row.latency_ms_p999,
        "client_cpu_us_per_query": row.client_cpu_us_per_query,
        "server_cpu_us_per_query": row.server_cpu_us_per_query,
        "errors": row.errors,
        "reconnects": row.reconnects,
        "overload": asdict(row.overload) if row.overload else None,
        "effect": row.effect.value,
        "low": row.effect.low,
        "high": row.effect.high,
        "letters": analysis.ties.letters.get(row.id, ""),
    }
