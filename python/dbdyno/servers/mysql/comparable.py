"""The variables by which two servers can be compared: settings, and nothing that names a place, a build or a moment."""

import re
from collections.abc import Mapping

from dbdyno.model.printable import one_line

VARIABLES_MAX = 1000  # of one server; the largest has some 700
VALUE_MAX = 1000  # characters
_OF_A_PLACE = re.compile(
    r".*(dir|_dirs?|_file|_path|_paths|_uuid|_version|_address|_host)|hostname|socket|port|extra_port|pid_file|server_id"
    r"|version|version_.*|timestamp|license|system_time_zone|report_.*|pseudo_.*|gtid_(executed|purged|current_pos|"
    r"binlog_pos|binlog_state|slave_pos)|last_insert_id|identity|rand_seed.*|insert_id|error_count|warning_count"
)
_SETTINGS = {"innodb_data_file_path", "innodb_temp_data_file_path"}  # sizes, whatever their names say
# Sizes of the tables of instruments, and what serves other nodes or another protocol: no load of a study meets them.
_ASIDE = re.compile(r"performance_schema_.+|wsrep_.*|group_replication_.*|mysqlx_.*|rocksdb_.*")
_FLAGS = ("optimizer_switch",)  # each holds a list of name=value


def comparable(variables: Mapping[str, str]) -> dict[str, str]:
    """Return those of ``variables`` that are settings, by name; each flag of a list of flags under its own."""
    found: dict[str, str] = {}
    for name, value in sorted(variables.items()):
        if name in _FLAGS:
            pairs = (flag.partition("=") for flag in value.split(",") if flag)
            found |= {f"{name}.{one_line(flag)}": one_line(setting) for flag, _, setting in pairs}
        elif name in _SETTINGS or not (_OF_A_PLACE.fullmatch(name) or _ASIDE.fullmatch(name) or _is_path(value)):
            found[name] = one_line(value[:VALUE_MAX])
    return dict(list(found.items())[:VARIABLES_MAX])


def _is_path(value: str) -> bool:
    return value.startswith(("/", "./"))
