"""The plan of an A/A run: one treatment of a study under two labels, so that whatever differs is the host's doing."""

from dataclasses import replace

from dbdyno.errors import UserError
from dbdyno.model.design import Comparison, SameTreatment, Treatment
from dbdyno.plan.plan import Plan, make_plan
from dbdyno.study.mistakes import did_you_mean
from dbdyno.study.study import Study

AA_BLOCKS = 10
LABELS = {"t1": "A", "t2": "B"}


def aa_plan(study: Study, *, treatment: str | None = None, blocks: int | None = None, seed: int | None = None) -> Plan:
    """The A/A plan of a study: of the treatment of that label, or else of its baseline.

    Raises:
        UserError: The study has no treatment of that label, or is about cuts, of which nothing is timed.

    """
    if study.crash is not None:
        raise UserError(f"{study.path}: an A/A run is about speed, [crash] about what is lost; leave [crash] out")
    whole = make_plan(study, seed=seed)
    chosen = _treatment_of_label(whole, treatment)
    alone = make_plan(study.at(chosen.levels), seed=seed)
    (spec,) = alone.specs.values()
    hosts = len(alone.design.fleet.hosts) if alone.design.fleet else 1
    host = "this host" if hosts == 1 else "each of these hosts, and from host to host,"
    about = study.about.model_copy(
        update={
            "title": f"A/A: {study.about.title}",
            "question": f"How much do trials differ on {host} where nothing does?",
            "expect": "Equivalent, or undecided on a noisy host.",
            "result": "",
        }
    )
    design = replace(
        alone.design,
        treatments=[Treatment(id_, {"label": label}) for id_, label in LABELS.items()],
        baseline="t1",
        comparisons=[Comparison("t1", "t2")],
        blocks=blocks or AA_BLOCKS * hosts,
        until="blocks",
        half_width=None,
        budget_seconds=None,  # the study's is for all its treatments; here the number of blocks is what was asked
        aa=SameTreatment(chosen.label, max(1, len(whole.design.comparisons))),
    )
    named = replace(alone.study, about=about)
    return replace(alone, study=named, design=design, specs=dict.fromkeys(LABELS, spec), reported=[], prices=None)


def _treatment_of_label(plan: Plan, label: str | None) -> Treatment:
    if label is None:
        return next(treatment for treatment in plan.design.treatments if treatment.id == plan.design.baseline)
    labels = {treatment.label: treatment for treatment in plan.design.treatments}
    if label not in labels:
        known = ", ".join(f'"{name}"' for name in labels)
        raise UserError(f"--treatment {label!r} is none of this study; it has {known}{did_you_mean(label, labels)}")
    return labels[label]
