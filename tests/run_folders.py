"""Run folders as if a run had written them, from records that a test made up."""

import os
from dataclasses import replace
from unittest.mock import patch

from dbdyno.store.events import Dropped, Ended, Failed, Joined, Note, Planned, Started
from dbdyno.store.header import Header
from dbdyno.store.run_folder import create

STUDY = {
    "stack": {"device": ["hdd-7200", "ssd-sata"], "scheduler": ["mq-deadline", "none"], "filesystem": "ext4"},
    "workload": {"kind": "slap", "load": "write", "clients": 10, "queries": 5000},
}


@patch.object(os, "fsync", lambda _: None)  # it need not outlive a power cut
def written(path, run, series=None):
    """Write ``run`` and its series (trial id -> name -> columns) into ``path``; return it."""
    header = Header(
        title=run.title,
        question=run.question,
        design=run.design,
        study=run.study,
        versions=run.versions,
        study_sha256="0" * 64,
        study_file=run.study_file or "study.toml",
    )
    folder = create(path, header, run.host, run.study_text)
    folder.append(Planned(run.design.blocks))
    for host, facts in run.hosts.items():
        folder.append(Joined(host, facts))
    ended = [(one.block, one.attempt, one.position, one, None) for one in run.trials]
    ended += [(one.block, one.attempt, 99, one, one.cause) for one in run.failures]
    for block, attempt, _, one, cause in sorted(ended, key=lambda item: item[:3]):
        about = one.id, block, attempt, one.treatment
        folder.trial_folder(one.id)
        folder.append(Started(*about, host=one.host))
        if cause is None:
            folder.finish(one, (series or {}).get(one.id, {}))
        else:
            folder.append(Failed(*about, cause, host=one.host))
    for treatment in run.dropped:
        folder.append(Dropped(treatment, f"{treatment} is left out"))
    for text in run.notes:
        folder.append(Note(text))
    folder.append(Ended(run.ended, run.stopped))
    folder.close()
    return path


def kept_run(path, run, series):
    """Write ``run`` as one of ``STUDY``."""
    return written(path, replace(run, study=STUDY), series)
