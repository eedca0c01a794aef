"""What is no use of a verb: exit code 2, one sentence on standard error with the remedy, nothing anywhere else."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest

from tests.run_folders import written
from tests.unit.cli.test_cli_tree import OURS
from tests.unit.report.conftest import build

NO_RUN = "is not a run folder: it holds no run.toml; dbdyno runs lists those there are"
NO_DISK = "gone is not a disk that dbdyno disk attach made; attached are: none"
NO_SERVER = "'mysql-9.9' is not a server that dbdyno can get; known are mariadb-10.5"
NO_FILE = "can't be read: No such file or directory"
NO_PATH = "an empty path was given; name a file or a folder"
NO_SEED = "must be a whole number from 0 to 9223372036854775807"
BAD = 'bad.toml:17: workload.clients: is "ten" but must be a whole number'
OF_A_DISK = {"disk mode": "instant", "disk snapshot": "s", "disk restore": "s", "disk forget": "s", "disk stats": "",
             "disk detach": "", "disk trace": "t.csv", "disk power-cut": "", "disk power-on": "",
             "disk fault latency": "--extra 1ms", "disk fault eio": "", "disk fault stuck": "", "disk fault gone": "",
             "disk fault clear": ""}  # fmt: skip

# What is typed, and what is said of it. {study} and {run} are good ones, {folder} holds neither.
WRONG = [
    ("quick {folder}/none", "is neither a folder nor a block device"),
    ("quick --rounds 1", "--rounds '1' must be at least 2; see dbdyno quick --help"),
    ("quick --rounds many", "--rounds 'many' must be a whole number; see dbdyno quick --help"),
    ("quick --html {study}", "exists and is not an HTML page; name another file"),
    ("quick --against hdd-720", 'Did you mean "hdd-7200"?'),
    ("plan", "STUDY is missing; see dbdyno plan --help"),
    ("servers add mariadb-10.6.tar.gz mariadb-11.4", "mariadb-10.6.tar.gz is an archive, which is added alone"),
    ("servers add mariadb-11.4 mysql-9.9", NO_SERVER),
    ("kernels add debian-6.1 debian-9", "'debian-9' is not a kernel that dbdyno can get; known are debian-5.10"),
    ("plan {folder}/none.toml", NO_FILE),
    ("plan stdy.toml", f"{NO_FILE}. Did you mean study.toml?"),
    (
        "stdy.toml",
        "stdy.toml is neither a command nor a file; a study is run by dbdyno run STUDY. Did you mean study.toml",
    ),
    ("study.toml", "study.toml is a file, not a command. Did you mean dbdyno plan study.toml?"),
    ("plan {folder}", "can't be read: Is a directory"),
    ("plan {binary}", "can't be read: it is not UTF-8 text; save it as UTF-8"),
    ("plann", "no such command 'plann'. Did you mean 'plan'?"),
    ("plan {bad}", BAD),
    ("plan {section}", "section.toml:15: workloads: is unknown; known are version"),
    ("plan {study} --seeds 1", "plan has no option '--seeds'; did you mean --seed?"),
    ("plan {study} --seed 9223372036854775808", NO_SEED),
    ("plan {study} --seed １２", NO_SEED),  # noqa: RUF001
    ("plan {study} --blocks 0", "--blocks '0' must be at least 1; see dbdyno plan --help"),
    ("plan {study} --blocks 1001", "--blocks '1001' must be at most 1000; see dbdyno plan --help"),
    ("plan {study} --blocks 8 --max-blocks 9", "give one"),
    ("plan {study} --budget 2", "write a number with its unit, such as 10s"),
    ("plan {study} --scale full", 'has no scale "full"; it has none'),
    ("plan {study} --blocks", "option '--blocks' requires an argument"),
    ("new {study} --vary clients=1,2", "is there already; name another file, or move it away"),
    ("new {folder}/n.toml", "nothing to compare: give --vary FIELD=LEVEL,LEVEL or --from MY.CNF"),
    ("new {folder}/n.toml --vary clients", "'clients' is not FIELD=LEVEL,LEVEL..., as in scheduler=none,mq-deadline"),
    ("new {folder}/n.toml --from {folder}/none.cnf", NO_FILE),
    ("new {folder}/none/n.toml --vary clients=1,2", "can't be written: No such file or directory"),
    ("try", "FIELD=LEVEL,LEVEL is missing; see dbdyno try --help"),
    ("try device=here", "give a field with levels to compare"),
    ("try scheduler=none,bfq", "choose a device: device=here (a folder on this disk)"),
    ("try clients=1,2 --kind replay-log device=here", "--kind replay-log needs file; give file=slow.log"),
    ("try clients=1,2 --kind replaylog device=here", 'Did you mean "replay-log"?'),
    ("try server=mysql://a@b/c device=here clients=1,2", "stack.device: can't be set with an external server"),
    ("try server=mysql://a:b@c/d clients=1,2", "stack.server: holds a password, which would be stored with the run"),
    ("try server=mysql://a@b clients=1,2", "stack.server: names no database, in which dbdyno makes its tables"),
    ("new {folder}/n.toml --vary a=1,2 --from x.cnf --server mysql://a@b/c", NO_FILE),
    ("watch {run} {folder}", "is a run; watch it alone"),
    ("try device=here clients=1,2 --duration 5", "--duration '5' is not a time; write a number with its unit, such as"),
    ("new {folder}/n.toml --vary clients=1,2 --duration 5m", "--duration '5m' has the unknown unit 'm'; known are us"),
    ("new {folder}/n.toml --vary clients=1,2 --device hdd-720", '--device: is "hdd-720"; known are hdd-7200'),
    (
        "try device=here clients=1,2 --load red",
        '--load: is "red"; allowed are read, key, write, update, mixed. Did you mean "read"?',
    ),
    ("run {folder}/none.toml", NO_FILE),
    ("run {bad} --into {folder}/new", BAD),
    ("run {study} --into {folder}/new --seed=-1", NO_SEED),
    ("run {study} --into {folder}/new --resume", "new does not exist, so there is no run to resume; leave out"),
    ("run {study} --into ''", "--into is empty; name a folder, such as --into results/first"),
    ("run {study} --into {run}", "is not empty; name a new folder, or go on with this run by --resume"),
    ("run {study} --into {study}/x", "Not a directory"),
    ("run {study} --resume", "--resume needs --into DIR, the run to go on with; dbdyno runs lists them"),
    ("run {study} --blocks 8 --until-decided", "give one"),
    ("suite", "NAME is missing; see dbdyno suite --help"),
    (
        "suite microbensh",
        'there are insert, microbench; a study file with [suite] may be named, too. Did you mean "microbench"?',
    ),
    ("suite {study}", "has no [suite] with loads; dbdyno run"),
    ("suite microbench --resume", "--resume needs --into DIR, the run to go on with; dbdyno runs lists them"),
    ("suite microbench --resume --into x", "x.toml is not there, the study that dbdyno suite wrote for x"),
    ("suite microbench --resume --into x --only scan", "goes on with the study as it was begun; leave out scan"),
    ("suite microbench --only skan", 'Did you mean "scan"?'),
    ("suite microbench --only skan", '--only: names no load: "skan"; there are '),
    ("suite microbench --servers mysql-9", "--servers mysql-9 leaves nothing to compare; give several, such as"),
    ("suite microbench --servers nope,mysql-9", '--servers: is "nope"; known are '),
    ("suite microbench server=mysql-9", "server=mysql-9 leaves nothing to compare; give several, such as"),
    ("suite microbench --blocks 1 clients=1,2 --servers mysqll-9", 'Did you mean "mysql-9"?'),
    ("suite microbench clients", "'clients' is not FIELD=LEVEL,LEVEL"),
    ("runs {folder}/none", "is not a folder; name the folder that holds your runs"),
    ("aa {folder}/none.toml", NO_FILE),
    ("aa {study} --treatment hdd", 'it has "hdd-7200", "ssd-sata"'),
    ("report {folder}", NO_RUN),
    ("report {folder}/none", "there is no folder "),
    ("report {run}n", "; dbdyno runs lists the run folders there are. Did you mean "),
    ("report {above}", "holds run folders and is none; name one of them, such as "),
    ("report ''", NO_PATH),
    ("report {run} --html ''", NO_PATH),
    ("report {run} {other} --every-pair", "--every-pair is for one run; give one folder"),
    ("report {run} --format jsn", 'is none of text, markdown, json, csv, parquet. Did you mean "json"?'),
    ("report {run} --json --format csv", "--json is --format json; leave out --json or --format csv"),
    ("report {run} --format csv --html {folder}/p.html", "is a table without a report; leave out --html"),
    ("report {run} --html {study}", "exists and is not an HTML page; name another file"),
    ("report {run} --html {folder}/none/p.html", "there is no folder"),
    ("report {run} --fail-if slow", "slow"),
    ("report {run} --fail-if slowr", 'Did you mean "slower"?'),
    ("report {run} --fail-if 'faster by 5'", "must be one of faster, slower"),
    ("report {run} --junit {folder}/none/v.xml", "there is no folder"),
    ("report {run} --prices {folder}/none.toml", NO_FILE),
    ("report {run} {run}", "a run folder is given twice; its blocks would count twice"),
    ("rank {folder}", NO_RUN),
    ("rank ''", NO_PATH),
    ("rank {run} {run}/", "a run folder is given twice; its blocks would count twice"),
    ("rank {run} --json --format markdown", "--json is --format json; leave out --json or --format markdown"),
    ("simulate", "give a trace, a job file of fio, or --rw such as --rw randwrite"),
    ("simulate {folder}/none", NO_FILE),
    ("simulate {study} --rw read", "--rw is for jobs"),
    ("simulate --rw rendread", 'Did you mean "randread"?'),
    ("simulate --rw read --device hdd-720", '--device: there is no drive model "hdd-720"; the models are hdd-7200'),
    ("simulate --rw read --device nvmee", 'ends in .toml). Did you mean "nvme"?'),
    ("simulate --rw read --kernel 6.y", '--kernel: there is no kernel "6.y"; the kernels are 2.6.9'),
    ("simulate --rw read --scheduler deadline", 'bfq. Did you mean "mq-deadline"?'),
    ("simulate --rw read --direct 0 --mount data=orderd", 'Did you mean "data=ordered"?'),
    ("simulate --rw read --direct 0 --filesystem exf4", 'Did you mean "ext4"?'),
    ("simulate {trace} --replay opn", '--replay is open or closed, not opn. Did you mean "open"?'),
    ("simulate {trace} --format blkprase", 'Did you mean "blkparse"?'),
    ("simulate {trace} --time-unit nss", 'unit of time "nss"; choose one of s, ms, us, 100ns, ns. Did you mean "ns"?'),
    ("simulate --rw read --scheduler cfq", '--scheduler: kernel 6.x has no scheduler "cfq"'),
    ("simulate --rw read --kernel 2.6", "--kernel: there is no kernel"),
    ("simulate --rw read --set fifo_batch", "is not TUNABLE=VALUE, such as fifo_batch=16"),
    ("simulate --rw read --nr-requests 128,", "holds an empty value, or one twice"),
    ("simulate --rw read --nr-requests many", "--nr-requests 'many' must be a whole number"),
    ("simulate --rw read --replay open", "--replay is for traces; jobs have no recorded times"),
    ("simulate --rw read --seconds soon", "write a number with its unit, such as 10s"),
    ("simulate --rw read --direct 2", "--direct '2' is neither 0 (through the page cache) nor 1 (past it)"),
    ("simulate --rw read --memory 1G", "which these jobs go past; give --direct 0"),
    ("simulate --rw read --direct 0 --memory 1", "--memory '1' is not a size"),
    ("simulate --rw read --direct 0 --memory 1M", "--memory: 1048576 is not between 16 MiB and 4 TiB"),
    ("simulate --rw read --direct 0 --filesystem xfs", "--filesystem 'xfs' is none of ext3, ext4"),
    ("simulate --rw read --direct 0 --filesystem ext3", "--filesystem: ext3 exists in kernels up to 4.2"),
    ("simulate --rw read --direct 0 --mount nobarrier", "is none of data=ordered, data=writeback"),
    ("simulate --rw read --direct 0 --iodepth 4", "--iodepth: 4 is not 1: a buffered job sends one request at a time"),
    ("simulate {study}", "neither [ingest] nor [commits]; give one of these tables"),
    ("simulate --rw read --seconds 1s --into {study}", "line 1 is not a result of a simulation; name another file"),
    ("compare {run}", "AFTER is missing; see dbdyno compare --help"),
    ("compare {run} {run}", "are the same folder; name two runs"),
    ("compare {run} {folder}", NO_RUN),
    ("compare {run} {other} --margin 3", "write a number with its unit, such as 3%"),
    ("compare {run} {other} --html {study}", "exists and is not an HTML page; name another file"),
    ("compare {run} {other} --junit {folder}/none/v.xml", "there is no folder"),
    ("export {folder} --output {folder}/r.tar.gz --yes", NO_RUN),
    ("export {run} --output {folder}/r.zip", "the file is a .tar.gz; name it r.tar.gz"),
    ("export {run} --output {folder}/r.tar.gz", "where nobody can answer, say --yes"),
    ("import {study} --into {folder}/r", "is no shared result of dbdyno's: it is not compressed by gzip"),
    ("import {folder}/none --into {folder}/r", NO_FILE),
    ("atlas {folder}/none --into {folder}/site", "No such file or directory"),
    ("atlas {study} --into {folder}/site", "holds no run folder and no .json of dbdyno simulate or quick"),
    ("atlas {run} --into {run}", "is not empty and is no atlas; name a new folder"),
    ("import {study}", "--into is missing; see dbdyno import --help"),
    ("history {run}", "a history needs two runs or more; given: 1"),
    ("history {run} {run}", "twice"),
    ("history {run} {folder}", NO_RUN),
    ("history {run} {other} --since yesterday", "--since 'yesterday' is no run of these, nor a date"),
    ("history {run} {other} --control none", "--control 'none' is not in both runs"),
    ("history {run} {other} --control hdd-720", 'Did you mean "hdd-7200 / none"?'),
    ("history {run} {other} --margin 3", "write a number with its unit, such as 3%"),
    ("watch", "DEVICE|RUN is missing; see dbdyno watch --help"),
    ("watch no-such-disk", "is not a device, emulated disk or folder"),
    ("watch {folder} --json --csv", "give --json or --csv, not both"),
    ("watch {folder} --interval 1ms", "--interval '1ms' is too short"),
    ("watch {folder} --count 0", "must be at least 1; see dbdyno watch --help"),
    ("trace", "a command is missing; see dbdyno trace --help"),
    ("trace record no-such-disk", "is not a device, emulated disk or folder"),
    ("trace record {folder} --max-size 1K", "--max-size '1K' must be at least 64K"),
    ("trace record {folder} --max-size many", "write a number with its unit, such as 4GiB"),
    ("trace show", "FILE is missing; see dbdyno trace show --help"),
    ("trace show {folder}/none", "No such file or directory"),
    ("trace show {folder}", "Is a directory"),
    ("trace show {binary}", "it is UTF-16 text, as PowerShell writes; convert it first: iconv"),
    ("trace show {binary} --format elf", 'there is no trace format "elf"; choose one of blktrace, blkparse'),
    ("doctor now", "got unexpected extra argument (now); see dbdyno doctor --help"),
    ("restore --hosts none.toml", NO_FILE),
    ("restore now", "got unexpected extra argument (now); see dbdyno restore --help"),
    ("completion tcsh", "SHELL 'tcsh' is none of bash, zsh, fish; see dbdyno completion --help"),
    ("kernels lst", "no such command 'lst'; see dbdyno kernels --help"),
    ("kernels add debian-9", "'debian-9' is not a kernel that dbdyno can get; known are debian-5.10"),
    ("kernels add debian-612", 'Did you mean "debian-6.12"?'),
    ("kernels remove debian-9", "'debian-9' is not a kernel that dbdyno can get; known are debian-5.10"),
    ("servers lst", "no such command 'lst'; see dbdyno servers --help"),
    ("servers add mysql-9.9", NO_SERVER),
    ("servers remove mysql-9.9", NO_SERVER),
    ("servers add mysql8.0", 'Did you mean "mysql-8.0"?'),
    ("servers add mysql-8.4", "give the vendor's archive: dbdyno servers add URL|FILE"),
    ("servers add ./none.tar.gz", "is neither a file nor an address that begins with https://"),
    ("servers add https://example.org/a.tar.gz", "nothing shows that it is the vendor's"),
    ("servers add https://example.org/a.zip", "is none of .tar.gz"),
    ("servers add mysql-9 --sha256 abc", "are for an archive"),
    ("crash", "a command is missing; see dbdyno crash --help"),
    ("crash list {folder}", NO_RUN),
    ("crash keep {run}", "TRIAL/CUT is missing; see dbdyno crash keep --help"),
    ("crash keep {run} b1/c1 {folder}/new", "'b1/c1' is not a cut of this run; dbdyno crash list RUN names them"),
    ("crash examine {folder} b1/c1", NO_RUN),
    ("crash examine {run} c1", "'c1' is not a cut of this run; dbdyno crash list RUN names them, as TRIAL/CUT"),
    ("hosts", "a command is missing; see dbdyno hosts --help"),
    ("hosts up {folder}/none.toml", NO_FILE),
    ("hosts up {roles}", "roles.toml:2: hosts: is unknown here; known are version, cluster, host. Did you mean"),
    (
        "simulate --rw randread --dask 10.0.0.1",
        "--dask '10.0.0.1': is not the address of a scheduler, such as tls://10.0.0.1:8786",
    ),
    ("hosts status", "HOSTS is missing; see dbdyno hosts status --help"),
    ("hosts status {folder}/none.toml", NO_FILE),
    ("hosts down {binary}", "can't be read: it is not UTF-8 text; save it as UTF-8"),
    ("images clean", "no such command 'clean'. Did you mean 'clear'?"),
    ("images clear 0000", "'0000' names 0 images; dbdyno images lists them"),
    ("disk", "a command is missing; see dbdyno disk --help"),
    ("disk fault", "a command is missing; see dbdyno disk fault --help"),
    ("disk models hdd", "got unexpected extra argument (hdd); see dbdyno disk models --help"),
    ("disk fit", "DEV|MODEL is missing; see dbdyno disk fit --help"),
    ("disk fit hdd-720", 'Did you mean "hdd-7200"?'),
    ("disk fit {folder}", "is neither a block device nor a drive file ending in .toml"),
    ("disk fit {study}", "unknown field `design`"),
    ("disk fit hdd-7200 --time 1s", "--time must be from 5 s to 24 h"),
    ("disk fit hdd-7200 --out {folder}/mine", "a drive file ends in .toml; name it mine.toml"),
    ("disk fit hdd-7200 --out {study}", "was not written by dbdyno disk fit; name another file"),
    ("disk fit hdd-7200 --erase S1", "--erase is for a block device, which hdd-7200 is not; leave it out"),
    ("disk list hdd", "got unexpected extra argument (hdd); see dbdyno disk list --help"),
    ("disk attach hdd-7200", "--size is missing; see dbdyno disk attach --help"),
    ("disk attach hdd-720 --size 1G", "no drive is called 'hdd-720'; known are hdd-7200, hdd-15k, "),
    ("disk attach hdd-7200 --size 4K", "--size must be at least 1 MiB and a multiple of 4096 bytes, not 4096"),
    ("disk detach /dev/sda", "/dev/sda is not a disk that dbdyno disk attach made; attached are: none"),
    ("disk attach {folder}/none.toml --size 1G", "No such file or directory"),
    ("disk attach hdd-7200 --size 1", "write a number with its unit, such as 4GiB"),
    ("disk attach hdd-7200 --size 1G --sector 1024", "--sector is 512 or 4096, not 1024"),
    ("disk attach hdd-7200 --size 1G --state old", "--state is fresh or steady, not old"),
    ("disk attach hdd-7200 --size 1G --state stead", 'not stead. Did you mean "steady"?'),
    ("completion zhs", 'Did you mean "zsh"?'),
    *((f"{verb} gone {rest}", NO_DISK) for verb, rest in OF_A_DISK.items()),
    ("disk mode gone fast", "the mode is instant or model, not fast"),
    ("disk trace gone", "give a FILE to start a trace, or --stop to stop one"),
    ("disk fault latency gone", "--extra is missing; see dbdyno disk fault latency --help"),
    ("disk fault eio gone --read --write", "--read and --write exclude each other"),
    ("disk fault eio gone --every 2 --probability 0.5", "--every and --probability exclude each other"),
    ("disk fault eio gone --probability 2", "must be at most 1.0; see dbdyno disk fault eio --help"),
    ("disk fault stuck gone --range 5", 'write it such as "0-1M" or "4096-8192"'),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return written(tmp_path_factory.mktemp("runs") / "a", build(4))


@pytest.fixture
def names(tmp_path, write_study, runs, monkeypatch):
    """What the words of a row stand for; all of it lies in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("run", "other"):
        shutil.copytree(runs, tmp_path / name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "trace.bin").write_bytes(bytes(range(256)))
    write_study(("clients = 10", 'clients = "ten"')).rename(tmp_path / "bad.toml")
    write_study(("[workload]", "[workloads]")).rename(tmp_path / "section.toml")
    write_study()
    hosts = 'version = 1\n[hosts.a]\nssh = "a"\nroles = ["client"]\n'
    (tmp_path / "roles.toml").write_text(hosts, encoding="utf-8")
    (tmp_path / "hosts.toml").write_text('version = 1\n[host.a]\nssh = "a"\nroles = ["client"]\n', encoding="utf-8")
    places = {
        "hosts": "hosts.toml",
        "study": "study.toml",
        "bad": "bad.toml",
        "section": "section.toml",
        "binary": "binary.toml",
        "trace": "trace.bin",
        "run": "run",
        "other": "other",
        "folder": "empty",
        "above": "",
        "roles": "roles.toml",
    }
    return {name: tmp_path / place for name, place in places.items()}


def everything(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_every_verb_is_in_the_table():
    lacking = [" ".join(words) for words in OURS if not any(row.startswith(" ".join(words)) for row, _ in WRONG)]
    assert [verb for verb in lacking if verb not in {"servers", "kernels", "images"}] == []


@pytest.mark.parametrize(("typed", "said"), WRONG, ids=[row for row, _ in WRONG])
def test_wrong_use_is_one_sentence(dbdyno, names, tmp_path, typed, said):
    before = everything(tmp_path)
    code, out, err = dbdyno(*(word.format(**names) for word in shlex.split(typed)))
    assert (code, out) == (2, "")
    assert err.startswith("dbdyno: ")
    assert said in err
    assert err.count("\n") == 1
    assert everything(tmp_path) == before, "nothing was touched"


def test_a_value_is_shown_short_and_without_what_a_terminal_obeys(dbdyno):
    code, out, err = dbdyno("plan", "x.toml", "--blocks", "\x1b[2J" + "9" * 5000)
    assert (code, out) == (2, "")
    assert len(err) < 200
    assert "\x1b" not in err


def without(capability, *argv, cwd, state):
    """Run the command line as root without a right of root's: what it is like for others."""
    command = ["setpriv", f"--bounding-set={capability}", sys.executable, "-m", "dbdyno.cli.main", *argv]
    environment = {**os.environ, "DBDYNO_STATE_DIR": str(state)}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
@pytest.mark.parametrize("typed", ["disk attach hdd-7200 --size 1G --json", "run study.toml --into r"])
def test_not_root_where_root_is_needed(names, state, tmp_path, typed):
    assert names["study"] == tmp_path / "study.toml"
    done = without("-sys_admin", *typed.split(), cwd=tmp_path, state=state)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "run it with sudo" in done.stderr
    assert not (tmp_path / "r").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
@pytest.mark.parametrize("typed", ["plan study.toml", "report run", "new n.toml --from study.toml"])
def test_a_file_that_must_not_be_read(names, tmp_path, state, typed):
    for file in (names["study"], names["run"] / "run.toml"):
        file.chmod(0)
    done = without("-dac_override,-dac_read_search", *typed.split(), cwd=tmp_path, state=state)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dbdyno: ")
    assert ": can't be read: Permission denied" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
@pytest.mark.usefixtures("names")
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("try device=here clients=1,2", "start dbdyno in a folder that you may write to"),
        ("suite microbench --servers mariadb,mysql-9", "start dbdyno in a folder that you may write to"),
        ("simulate --rw read --seconds 0.1s --into x.jsonl", "x.jsonl: can't be written: Permission denied"),
    ],
)
def test_a_current_folder_that_must_not_be_written(tmp_path, state, typed, said):
    before = everything(tmp_path)
    (tmp_path / "runs").mkdir()
    folders = (tmp_path, tmp_path / "runs")
    for folder in folders:
        folder.chmod(0o555)
    try:
        done = without("-dac_override,-dac_read_search", *typed.split(), cwd=tmp_path, state=state)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    (tmp_path / "runs").rmdir()
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert everything(tmp_path) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_state_folder_that_can_not_be_made(tmp_path):
    above = tmp_path / "above"
    above.mkdir(mode=0o555)
    done = without("-dac_override,-dac_read_search", "images", cwd=tmp_path, state=above / "state")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"dbdyno: the state folder {above / 'state'} can't be made: Permission denied;"
        " set DBDYNO_STATE_DIR to a folder of your own\n"
    )
