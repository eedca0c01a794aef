"""What is written is there: verified by fio, and by filesystems and a database server after power cuts.

With ``DBDYNO_TEST_LONG`` set, every drive, and more seeds.
"""

import json
import shutil
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import fields
from itertools import product

import pytest

from dbdyno._native import device_models
from dbdyno.servers.contract import ServerError
from dbdyno.servers.mysql.connection import connect
from dbdyno.servers.mysql.own import install_data, server_command
from dbdyno.servers.mysql.server import await_ready
from dbdyno.servers.sources.installation import find_server
from dbdyno.servers.user import own_folder, unprivileged
from dbdyno.stack.disk_client import PowerCut
from tests.disks import LONG, Recorder, attached, fio, fsck, make_filesystem, mounted
from tests.sampled import some
from tests.support import wait_for

pytestmark = pytest.mark.host

MODELS = [drive["name"] for drive in device_models()] if LONG else ["hdd-7200", "ssd-sata", "ebs-gp3", "ideal"]
RAIDS = ["raid0(ssd-sata, 2)", "raid1(ssd-sata, 2)", "raid10(hdd-15k, 4)", "raid5(ssd-sata, 4)"]
RAIDS += ["raid5(hdd-15k, 4, write_cache_bytes=8MiB)", "raid6(ssd-sata, 6)"]
SEEDS = range(1, 13 if LONG else 2)
RECORDS_MIN = 5  # that were acknowledged before a power cut


@pytest.mark.parametrize(("model", "mode"), some("verified", product([*MODELS, *RAIDS], ["instant", "model"]), 0.25))
def test_fio_finds_what_it_wrote(state, model, mode):
    with attached(state, model, size="256M") as disk:
        disk("mode", mode)
        many = "64M" if mode == "instant" or LONG else "4M"
        server_command = {"rw": "randwrite", "bs": None, "bsrange": "4k-256k", "size": "128M", "io_size": many}
        # Not with --norandommap: fio would then overwrite what it has not verified yet.
        done = subprocess.run(
            fio(disk.device, verify="crc32c", verify_fatal=1, verify_state_save=0, randseed=7, **server_command),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        job = json.loads(done.stdout)["jobs"][0]
        assert job["read"]["io_kbytes"] >= job["write"]["io_kbytes"] > 1000


def cut_under_load(disk, place, seed, seconds):
    """Write with fio and, record by record, ourselves; cut the power; returns the recorder and the cut."""
    recorder = Recorder(place / "records", 64)
    writer = threading.Thread(target=recorder.run)
    server_command = {"directory": place, "filename": None, "rw": "randwrite", "ioengine": "psync", "fsync": 200}
    server_command |= {"size": "4M", "numjobs": 2, "create_on_open": 1, "nrfiles": 4, "time_based": 1, "runtime": 120}
    load = subprocess.Popen(fio(None, **server_command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    writer.start()
    time.sleep(seconds)
    wait_for(lambda: recorder.acknowledged > RECORDS_MIN)
    cut = disk("power-cut", "--seed", str(seed), "--json")
    cut = PowerCut(**{field.name: cut[field.name] for field in fields(PowerCut)})
    writer.join()
    load.kill()  # it may go on reading what it has cached
    load.wait()
    return recorder, cut


@pytest.mark.drawn(2)
@pytest.mark.parametrize("model", ["hdd-7200", "ssd-sata"])
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_a_filesystem_with_barriers_survives_power_cuts(state, tmp_path, kind, model):
    with attached(state, model, size="512M") as disk:
        disk("mode", "instant")
        make_filesystem(kind, disk.device)
        # The hard disk answers at once, else a run has but a few records; the SSD takes its time.
        if model != "hdd-7200":
            disk("mode", "model")
        lost_sectors = 0
        for seed in range(1, 20):
            if seed not in SEEDS and lost_sectors:
                break
            with mounted(disk.device, tmp_path / "place") as place:
                recorder, cut = cut_under_load(disk, place, seed, 1.5)
            lost_sectors += cut.lost_sectors
            disk("power-on")
            with mounted(disk.device, tmp_path / "place"):
                assert recorder.acknowledged > RECORDS_MIN
                assert recorder.missing_records(cut) == [], f"seed {seed}: forced to the disk and gone"
            assert fsck(kind, disk.device) == "", f"seed {seed}"
        else:
            pytest.fail("19 cuts that took nothing prove nothing")


def test_without_barriers_a_loss_is_found(state, tmp_path):
    """That the test above can fail."""
    with attached(state, "hdd-7200", size="512M") as disk:
        disk("mode", "instant")
        found = []
        for seed in range(1, 17):
            make_filesystem("ext4", disk.device)
            with mounted(disk.device, tmp_path / "place", "nobarrier") as place:
                recorder, cut = cut_under_load(disk, place, seed, 1.0)
            disk("power-on")
            try:
                with mounted(disk.device, tmp_path / "place"):
                    found += recorder.missing_records(cut)
            except subprocess.CalledProcessError:
                found.append("it can't be mounted any more")
            found += [fsck("ext4", disk.device)] if fsck("ext4", disk.device) else []
            if found:
                return
        pytest.fail("sixteen power cuts without barriers lost nothing")


DURABLE = {"innodb_flush_log_at_trx_commit": 1, "innodb_buffer_pool_size": "32M", "innodb_log_file_size": "8M"}


class Database:
    """A MariaDB on a folder, that commits row by row durably."""

    def __init__(self, place, scratch):
        self.data, self.scratch, self.socket = place / "mysql", scratch, scratch / "s"
        self.server = find_server("mariadb")

    def install(self):
        log = self.scratch / "install.log"
        install_data(self.server, self.data, {"PATH": "/usr/bin:/bin"}, log, DURABLE)

    @contextmanager
    def running(self):
        """The server, recovered if need be; gone in the end, as after a power cut."""
        log = self.scratch / "error.log"
        argv = server_command(self.server, self.data, self.socket, log, DURABLE, "innodb")
        server = subprocess.Popen(unprivileged(argv), stderr=subprocess.DEVNULL, start_new_session=True, cwd="/")
        try:
            await_ready(server, self.socket, log)
            yield
        finally:
            server.kill()
            server.wait()

    def ask(self, statement):
        with connect(self.socket) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    def insert_until_it_fails(self, committed, client):
        with (
            suppress(ServerError),
            connect(self.socket) as connection,
            connection.cursor() as cursor,
        ):
            while True:
                cursor.execute(f"INSERT INTO own.t VALUES ({client}, {committed[client]}, REPEAT('x', 200))")
                committed[client] += 1


def test_committed_rows_survive_power_cuts(state):
    scratch, place = state / "db", state / "place"  # a server's socket needs a short path that all may pass
    own_folder(scratch)
    try:
        with attached(state, "ssd-sata", size="1G") as disk:
            disk("mode", "instant")
            make_filesystem("ext4", disk.device)
            database = Database(place, scratch)
            with mounted(disk.device, place):
                place.chmod(0o755)
                database.install()
            for seed in SEEDS:
                commit_and_cut(disk, database, seed)
        place.rmdir()
    finally:
        shutil.rmtree(scratch)


def commit_and_cut(disk, database, seed):
    committed = [0] * 4
    inserting = [
        threading.Thread(target=database.insert_until_it_fails, args=(committed, client))
        for client in range(len(committed))
    ]
    place = database.data.parent
    with mounted(disk.device, place):
        with database.running():
            database.ask("CREATE OR REPLACE DATABASE own")
            database.ask("CREATE TABLE own.t (client INT, number INT, pad TEXT, PRIMARY KEY (client, number))")
            for client in inserting:
                client.start()
            time.sleep(2)
            wait_for(lambda: min(committed) > RECORDS_MIN)
            cut = disk("power-cut", "--seed", str(seed), "--json")
        for client in inserting:
            client.join()
    assert cut["write_cache"] == "volatile"
    disk("power-on")
    with mounted(disk.device, place), database.running():
        found = {
            row[0]: row[1:] for row in database.ask("SELECT client, COUNT(*), MAX(number) FROM own.t GROUP BY client")
        }
    for client, rows in enumerate(committed):
        # One more may have been committed without its client hearing of it.
        assert found[client] in {(rows, rows - 1), (rows + 1, rows)}, f"seed {seed}, client {client}: {rows}"
    assert fsck("ext4", disk.device) == ""
