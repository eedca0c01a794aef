"""What a server made of the options that a study added to CREATE TABLE, read back of the tables themselves."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dbdyno.model.printable import short
from dbdyno.mysql.settings import INNODB
from dbdyno.mysql.table_options import missing_options, parse_table_options
from dbdyno.servers.contract import LoadTable, ServerError, SettingOutcome, TableFormats
from dbdyno.servers.mysql.connection import Cursor, rows
from dbdyno.store.records import TABLE_OPTIONS

TRIED = "dbdyno_tried"  # a schema in which a table is made for trial
SAID_MAX = 300  # characters of what a server says
TABLES_MAX = 1000  # that are looked at
# Tables that the load generator keeps for itself: a script's record, and those of DDL, which come and go.
_GENERATOR_TABLES = re.compile(r"dbdyno_script$|ddl_")
_ROOM_BYTES = 4 * 1024**2  # of less, what page compression gives back is lost in rounding
# MySQL 8.0 and later give InnoDB's list of tablespaces another name than MariaDB and MySQL up to 5.7 do. For a table
# with ROW_FORMAT=COMPRESSED, MariaDB puts the compressed page's size into page_size, MySQL into zip_page_size.
_TABLESPACES = (
    "SELECT name, {page}, file_size, allocated_size FROM information_schema.{table} WHERE name LIKE %s",
    (
        ("innodb_sys_tablespaces", "page_size"),
        ("innodb_sys_tablespaces", "IF(zip_page_size, zip_page_size, page_size)"),
        ("innodb_tablespaces", "IF(zip_page_size, zip_page_size, page_size)"),
    ),
)
_ENCRYPTED = (
    "SELECT name FROM information_schema.innodb_tablespaces_encryption WHERE name LIKE %s AND encryption_scheme > 0",
    "SELECT name FROM information_schema.innodb_tablespaces WHERE name LIKE %s AND encryption = 'Y'",
)

_ENCRYPTS = (
    "SELECT 1 FROM information_schema.schemata JOIN information_schema.tables ON table_schema = schema_name "
    "WHERE schema_name = %s AND default_encryption = 'YES' AND engine = 'InnoDB'"
)


def table_formats(cursor: Cursor, schema: str, tables: Sequence[LoadTable], options: str) -> TableFormats:
    """What the tables of a schema have of ``options``. Raises ``ServerError``."""
    wanted = parse_table_options(options)
    tables = [table for table in tables if not _GENERATOR_TABLES.match(table.name)][:TABLES_MAX]
    if not tables:
        return TableFormats({}, "")
    names = {table.name for table in tables}
    files = [file for file in _files(cursor, schema) if _table_of(file[0]) in names]
    missing: dict[str, str] = {}
    for table in tables:
        is_innodb = table.engine.casefold() == INNODB
        pages = {page for name, page, _, _ in files if _table_of(name) == table.name} if is_innodb else set()
        page_bytes = pages.pop() if len(pages) == 1 else None
        for clause in missing_options(options, table.engine, table.row_format, table.options, page_bytes):
            missing.setdefault(clause, table.name)
    size, allocated = sum(file[2] for file in files), sum(file[3] for file in files)
    compressed = wanted.options.get("PAGE_COMPRESSED", "0") not in {"0", "NO", "OFF"} or "COMPRESSION" in wanted.options
    if compressed and size >= _ROOM_BYTES and allocated >= size:
        missing["pages are compressed, but their files take no less room: the filesystem gives none back"] = "its files"
    cursor.execute(f"SHOW CREATE TABLE `{schema}`.`{tables[0].name.replace('`', '``')}`")
    shown = {"table_options": short(_behind_columns(str(rows(cursor, 2)[0][1])), SAID_MAX)}
    if pages := {page for _, page, _, _ in files}:
        shown["page_bytes"] = ", ".join(map(str, sorted(pages)))
    if wanted.partitions:
        shown["files"] = str(len(files))
    return TableFormats(shown, "; ".join(f"{clause} ({name})" for clause, name in list(missing.items())[:5]))


def tried_table(cursor: Cursor, schema: str, engine: str, options: str) -> SettingOutcome:
    """Whether a table with the columns of sysbench's can be made with ``options``; of a refusal the server's reason."""
    columns = "id INT NOT NULL, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, PRIMARY KEY (id)"
    try:
        cursor.execute(f"CREATE TABLE `{schema}`.`sbtest1` ({columns}) ENGINE = {engine} {options}")
    except ServerError as error:
        cursor.execute("SHOW WARNINGS")  # of which the first is the engine's own, and the error a general one
        warnings = [str(row[2]) for row in rows(cursor, 3)]
        return SettingOutcome(TABLE_OPTIONS, options, "refused", said=short((warnings or [str(error)])[0], SAID_MAX))
    return SettingOutcome(TABLE_OPTIONS, options, "as asked")


def _files(cursor: Cursor, schema: str) -> list[tuple[str, int, int, int]]:
    """InnoDB's files of a schema: name, bytes of a page, of the file, and those that it takes; empty if not shown."""
    statement, places = _TABLESPACES
    for table, page in places:
        with suppress(ServerError):
            cursor.execute(statement.format(table=table, page=page), (_like(schema),))
            listed: list[Any] = list(rows(cursor, 4))
            return [(str(name), int(page), int(size or 0), int(taken or 0)) for name, page, size, taken in listed]
    return []


def encrypted_files(cursor: Cursor, schema: str) -> int:
    """How many of a schema's files are encrypted, by InnoDB's own lists; 0 where it has none or may not show them."""
    for statement in _ENCRYPTED:
        with suppress(ServerError):
            return cursor.execute(statement, (_like(schema),))
    return 0


def encrypts(cursor: Cursor, schema: str) -> bool:
    """Whether a schema's default encrypts its tables of InnoDB, if it has any; MariaDB keeps no such default."""
    with suppress(ServerError):
        return cursor.execute(_ENCRYPTS, (schema,)) > 0
    return False


def _like(schema: str) -> str:
    return re.sub(r"([\\_%])", r"\\\1", schema) + "/%"


def _table_of(name: str) -> str:
    """The table of a file; one of a partition has its name behind a mark."""
    return re.split(r"#[pP]#", name.rpartition("/")[2])[0]


def _behind_columns(statement: str) -> str:
    """What SHOW CREATE TABLE has behind the columns, without what any table has there."""
    tail = " ".join(statement.partition("\n) ")[2].split())
    of_any = r"\b(ENGINE|AUTO_INCREMENT|DEFAULT CHARSET|COLLATE)=\w+ ?|\bCOMMENT='(?:[^']|'')*' ?"
    return re.sub(of_any, "", tail).replace("`", "").strip()
