"""Ten pages as people share them: of runs whose truth is known, made up with a seed."""

from dataclasses import replace
from itertools import pairwise

from dbdyno.analysis import quick
from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.two_runs import compare
from dbdyno.model.design import Factor, SameTreatment, Treatment
from dbdyno.report.comparison import document as compared_document
from dbdyno.report.quick import document as quick_document
from dbdyno.report.render import html
from tests.crash_runs import crash_run
from tests.unit.analysis.test_analysis_quick import target
from tests.unit.report.conftest import build, latencies_of, series_of
from tests.unit.report.rendered import as_page

HOST = {
    "cores": 2,
    "cpu": {"model": "AMD EPYC"},
    "memory": {"bytes": 8 << 30},
    "virtualisation": {"hypervisor_flag": "yes"},
}
SERVER = {
    "version": "10.11.14-MariaDB-0+deb12u2",
    "version_comment": "Debian 12",
    "default_storage_engine": "InnoDB",
    "innodb_flush_log_at_trx_commit": "1",
    "innodb_buffer_pool_size": "268435456",
    "log_bin": "OFF",
}
DRIVES = {
    "hdd-7200": (118, 175), "hdd-15k": (248, 369), "ssd-sata": (634, 8748), "ssd-s4600": (11807, 6290),
    "nvme": (1304, 11840), "nvme-980pro": (1606, 16332), "nvme-pm9a3": (28815, 10177), "ebs-gp3": (891, 1125),
    "ebs-gp2": (892, 1125), "nvme-local": (21081, 10624),
}  # fmt: skip
CLIENTS = {1: 210, 2: 405, 4: 760, 8: 1240, 16: 1490, 32: 1520}
STUDY = 'version = 1\n[study]\ntitle = "SSD or HDD"\n\n[stack]\ndevice = ["hdd-7200", "ssd-sata"]\n'


def observing(run, kind="emulated", **server):
    """The run with what a stack of this kind reads back."""
    trials = []
    for trial in run.trials:
        device = {**trial.observed.get("device", {}), "kind": kind}
        layers = {**trial.observed, "device": device, "server": {**SERVER, **server}}
        trials.append(replace(trial, observed=layers))
    return replace(run, trials=trials, host=HOST, study_text=STUDY, study_file="ssd-or-hdd.toml")


def page_of(run, **options):
    series = series_of(run)
    loads = {id_: each["load"] for id_, each in series.items()}
    analysis = analyse(run, load_series=loads, watched=series, latencies=latencies_of(run), **options)
    return as_page(run, analysis, series)


def comparison():
    """Two drives and two schedulers; a trial failed and its block was repeated."""
    run = observing(build())
    factors = [
        Factor("device", "stack", ["hdd-7200", "ssd-sata"]),
        Factor("scheduler", "stack", ["mq-deadline", "none"]),
    ]
    return page_of(replace(run, design=replace(run.design, factors=factors)))


def ranking():
    """Three filesystems, ranked over three loads."""
    loads, filesystems = ("oltp-read", "oltp-write", "ingest"), ("ext4", "xfs", "btrfs")
    names = [(load, filesystem) for load in loads for filesystem in filesystems]
    treatments = [
        Treatment(f"t{place}", {"filesystem": filesystem, "load": load})
        for place, (load, filesystem) in enumerate(names, 1)
    ]
    speed = {"ext4": 1.0, "xfs": 1.12, "btrfs": 0.6}
    rates = {
        one.id: 300.0 * (1 + loads.index(load)) * speed[filesystem]
        for one, (load, filesystem) in zip(treatments, names, strict=True)
    }
    pairs = [(f"t{3 * row + 1}", f"t{3 * row + other}") for row in range(3) for other in (2, 3)]
    run = observing(build(rates=rates, treatments=treatments, pairs=pairs, void_block=0), kind="real")
    factors = [Factor("filesystem", "stack", list(filesystems)), Factor("load", "workload", list(loads))]
    asked = "Which filesystem is fastest over these three loads?"
    return page_of(
        replace(run, title="Filesystems", question=asked, design=replace(run.design, factors=factors)), each_pair=True
    )


def not_trustworthy():
    """An interrupted run on a busy host, with errors, lax commits and a fast cache that ran out."""
    named = [
        Treatment("t1", {"innodb_flush_log_at_trx_commit": "1"}),
        Treatment("t2", {"innodb_flush_log_at_trx_commit": "2"}),
    ]
    run = build(4, rates={"t1": 410.0, "t2": 640.0}, treatments=named, pairs=[("t1", "t2")], void_block=0, noise=0.2)
    run = observing(run, kind="here")
    beyond = {
        "beyond": ["foreign_cpu"],
        "foreign_cpu": 0.4,
        "limits": {"foreign_cpu": 0.05},
        "others": {"updatedb": 0.8},
    }
    cache = {"fast_cache": {"bytes": 6e9, "drive_bytes": 12e9, "ran_out_s": 2.4}}
    errors = {"errors": [{"code": 1213, "count": 14, "message": "Deadlock found when trying to get lock"}]}
    trials = []
    for trial in run.trials:
        level = "2" if trial.treatment == "t2" else "1"
        server = {**trial.observed["server"], "innodb_flush_log_at_trx_commit": level}
        changed = replace(trial, observed={**trial.observed, "server": server}, device=cache, load=errors)
        trials.append(replace(changed, disturbance=beyond) if trial.block < 3 else changed)
    return page_of(
        replace(
            run,
            title="Is it worth risking a second of commits?",
            question="How much faster are commits that wait for no flush?",
            trials=trials,
            ended="interrupted",
            stopped="",
        )
    )


def curve():
    """How throughput grows with clients, until it does not."""
    treatments = [Treatment(f"t{place}", {"clients": str(clients)}) for place, clients in enumerate(CLIENTS, 1)]
    rates = {one.id: float(rate) for one, rate in zip(treatments, CLIENTS.values(), strict=True)}
    pairs = [(before.id, after.id) for before, after in pairwise(treatments)]
    run = observing(build(rates=rates, treatments=treatments, pairs=pairs, void_block=0))
    factors = [Factor("clients", "workload", list(map(str, CLIENTS)))]
    asked = "From how many clients on does another one gain nothing?"
    return page_of(replace(run, title="How many clients", question=asked, design=replace(run.design, factors=factors)))


def quick_look():
    """A quick look at a folder's disk, held against a drive of the catalogue."""
    here, other = target("/srv/db", noise=0.03), target("ssd-sata", noise=0.01, fsync=600, randread=9000)
    noise = quick.noise_of(here)
    drives = [target(name, fsync=fsync, randread=reads) for name, (fsync, reads) in DRIVES.items()]
    found = quick.Quick(
        here,
        quick.Host(0.02, 0.0, 0.1),
        noise,
        quick.least_shown(noise),
        quick.likeness(here, [target("ssd-sata", fsync=600, randread=9000, randwrite=20000)]),
        against=other,
        verdicts=quick.verdicts(here, other),
        facts={
            "filesystem": "ext4 (rw,relatime)",
            "disk": "nvme0n1 (Some Drive 980)",
            "host": "db1",
            "kernel": "6.12.0",
            "measured": "2026-01-02 03:04 UTC",
        },
        catalogue=tuple(drives),
    )
    return html.render(quick_document(found))


def one_baseline():
    """The same curve from a study in which every number of clients is compared with one, not in order."""
    levels = {16: 1490.0, 32: 1520.0, 8: 1240.0, 4: 760.0, 2: 405.0}
    found = replace(against_the_first("clients", "workload", levels), question="How many clients does it serve?")
    return page_of(replace(found, title="How many clients"))


def versions():
    """Versions of two servers against one of them."""
    levels = {"mysql-5.6": 400.0, "mysql-5.5": 390.0, "mysql-9": 520.0, "mariadb-10.5": 610.0, "mariadb-11.8": 640.0}
    asked = "Ten clients that commit on a SATA SSD: do newer servers serve them better?"
    return page_of(replace(against_the_first("server", "stack", levels), title="Old servers and new", question=asked))


def against_the_first(factor, section, rates):
    """A run of one factor (level -> queries per second), whose first level is the baseline."""
    treatments = [Treatment(f"t{place}", {factor: str(level)}) for place, level in enumerate(rates, 1)]
    by_id = {one.id: rate for one, rate in zip(treatments, rates.values(), strict=True)}
    pairs = [(treatments[0].id, one.id) for one in treatments[1:]]
    run = observing(build(rates=by_id, treatments=treatments, pairs=pairs, void_block=0))
    return replace(run, design=replace(run.design, factors=[Factor(factor, section, list(map(str, rates)))]))


def crash():
    """Three settings of a log, of which one loses nothing in power cuts."""
    run = crash_run()
    return as_page(run, analyse(run))


def before_and_after():
    """Two runs, of which the second has a newer server; one treatment is a control."""
    study = {"stack": {"device": ["hdd-7200", "ssd-sata"]}, "server": {"settings": {"innodb_buffer_pool_size": "64M"}}}
    rates = {"t1": 410.0, "t2": 398.0, "t3": 1690.0 * 1.12, "t4": 1702.0}
    before, after = replace(build(8), study=study), replace(build(10, seed=8, rates=rates), study=study)
    after = replace(after, versions={**after.versions, "mariadb": "11.8.2"})
    return html.render(compared_document(before, after, compare(before, after, control="hdd-7200 / none")))


def noise_floor():
    """An A/A run: the same treatment twice."""
    run = build(10, rates={"t1": 400.0, "t2": 400.0}, pairs=[("t1", "t2")], void_block=0)
    treatments = [Treatment(id_, {"label": name}) for id_, name in (("t1", "A"), ("t2", "B"))]
    design = replace(run.design, treatments=treatments, aa=SameTreatment("ssd-sata / none", 3))
    return page_of(observing(replace(run, design=design, title="A/A: SSD or HDD")))


PAGES = {
    page.__name__: page
    for page in (
        *(comparison, ranking, not_trustworthy, curve, quick_look),
        *(one_baseline, versions, crash, before_and_after, noise_floor),
    )
}
