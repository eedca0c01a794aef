"""Run folders as if a run had written them, from records that a test made up."""

from dataclasses import asdict

from dbdyno.store.run_folder import create


def written(path, run, series=None):
    """Write ``run`` and its series (trial id -> name -> columns) into ``path``; return it."""
    design = run.design
    header = {
        "run": {
            "title": run.title,
            "question": run.question,
            "baseline": design.baseline,
            "study_sha256": "0" * 64,
            "study_file": run.study_file or "study.toml",
            **{name: getattr(design, name) for name in ("seed", "blocks", "margin", "metric", "until", "screened")},
        },
        "versions": run.versions,
        "factor": [asdict(factor) for factor in design.factors],
        "treatment": [asdict(treatment) for treatment in design.treatments],
        "comparison": [asdict(comparison) for comparison in design.comparisons],
        "study": run.study,
    }
    folder = create(path, header, run.host, run.study_text)
    folder.note("planned", blocks=design.blocks)
    for trial in run.trials:
        folder.trial_folder(trial.id)
        folder.finish(trial, (series or {}).get(trial.id, {}))
    for failure in run.failures:
        folder.note("failed", **{**asdict(failure), "trial": failure.id})
    for note in run.notes:
        folder.note("note", text=note)
    folder.note("ended", how=run.ended, why=run.stopped)
    folder.close()
    return path
