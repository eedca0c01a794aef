"""What of a server may lie on a disk of its own: the variables, and what each product and version lacks."""

from dataclasses import replace
from pathlib import Path

import pytest

from dbdyno.servers.mysql.own import PLACES, place_mistakes, server_command
from dbdyno.servers.sources.installation import Installation
from dbdyno.study.schema import PlaceSection
from tests.unit.servers.test_servers import INSTALLATION, MYSQL

OLD_MARIADB = replace(INSTALLATION, version="10.11.6-MariaDB")


def mysql(version: str) -> Installation:
    return replace(MYSQL, version=version)


def test_every_place_of_a_study_has_a_variable():
    assert set(PlaceSection.model_fields) == set(PLACES)


def test_folders_are_named_as_they_lie_to_the_data_since_servers_keep_them():
    data, disk = Path("/scratch/a/mnt/server"), Path("/scratch/a/disk-log/mnt/server")
    places = {purpose: disk / purpose for purpose in PLACES}
    argv = server_command(MYSQL, data, Path("/s"), Path("/l"), {"log_bin": True}, "innodb", None, places)
    beside = "../../disk-log/mnt/server"
    assert [argument for argument in argv if "disk-log" in argument] == [
        f"--tmpdir={disk}/tmpdir",
        f"--innodb-log-group-home-dir={beside}/innodb_log",
        f"--log-bin={beside}/binlog/binlog",
        f"--innodb-undo-directory={beside}/undo",
        f"--innodb-doublewrite-dir={beside}/doublewrite",
    ]
    assert argv.index("--log-bin=binlog") < argv.index(f"--log-bin={beside}/binlog/binlog"), "the last one counts"


@pytest.mark.parametrize(
    ("installation", "settings", "lacking"),
    [
        (OLD_MARIADB, {}, {"binlog", "undo", "doublewrite"}),
        (OLD_MARIADB, {"log_bin": True, "innodb_undo_tablespaces": 3}, {"doublewrite"}),
        (INSTALLATION, {"log_bin": True}, {"doublewrite"}),
        (mysql("5.5.62"), {"innodb_undo_tablespaces": 2}, {"binlog", "undo", "doublewrite"}),
        (mysql("5.7.44"), {"log_bin": True}, {"undo", "doublewrite"}),
        (mysql("8.0.19"), {}, {"doublewrite"}),
        (mysql("8.0.36"), {}, set()),
        (mysql("9.7.4"), {"log_bin": False, "innodb_doublewrite": "OFF"}, {"binlog", "doublewrite"}),
    ],
)
def test_what_a_server_lacks_is_said_with_its_remedy(installation, settings, lacking):
    mistakes = place_mistakes(installation, settings, PLACES)
    assert mistakes.keys() == lacking
    assert all(text.endswith("leave it out") for text in mistakes.values())
