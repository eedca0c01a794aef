"""The analysis of a run folder, with all that its series tell."""

from pathlib import Path

from dbdyno.analysis.analyse import Analysis, analyse
from dbdyno.store.records import Run
from dbdyno.store.series import read_load_series, read_watched


def analyse_folder(folder: Path, run: Run, *, each_pair: bool = False) -> Analysis:
    """Analyse a run that was read from ``folder``; with ``each_pair`` also the pairs that no one planned."""
    ids = [trial.id for trial in run.trials]
    load_series, watched = read_load_series(folder, ids), read_watched(folder, ids)
    return analyse(run, each_pair=each_pair, load_series=load_series, watched=watched)
