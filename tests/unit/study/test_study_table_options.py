"""What a study may add to CREATE TABLE, and what it is told of tables that have it in name only."""

import re

import pytest

from dbdyno.mysql.table_options import missing_options, parse_table_options


def test_options_and_partitions_are_told_apart():
    parsed = parse_table_options(
        "row_format=COMPRESSED KEY_BLOCK_SIZE 8, COMPRESSION='lz4' Partition BY KEY (id) PARTITIONS 16"
    )
    assert parsed.options == {"ROW_FORMAT": "COMPRESSED", "KEY_BLOCK_SIZE": "8", "COMPRESSION": "lz4"}
    assert parsed.partitions == "Partition BY KEY (id) PARTITIONS 16"
    assert parse_table_options("").options == {}
    parse_table_options(
        "PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN MAXVALUE)"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ROW_FORMAT=DYNAMIC; DROP TABLE t", "can't be read at '; DROP TABLE t'"),
        ("ROW_FORMAT=DYNAMIC SELECT 1", "holds 'SELECT'"),
        ("DATA DIRECTORY='/root'", "holds 'DATA'"),
        ("CONNECTION='mysql'", "holds 'CONNECTION'"),
        ("ENGINE=MyISAM", "holds 'ENGINE'"),
        ("ROW_FORMAT=TIGHT", "ROW_FORMAT=TIGHT, which is none of its values"),
        ("COMPRESSION='lz4", "can't be read"),
        ("PARTITION BY KEY (id", "a parenthesis too many or too few"),
        ("PARTITION BY KEY (id)) (", "a parenthesis too many or too few"),
        ("PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (1) DATA DIRECTORY 'x')", "with 'DATA'"),
        ("PARTITION BY KEY (id) SELECT 1", "with 'SELECT'"),
        ("PARTITION BY KEY (id); DROP TABLE t", "can't be read at '; DROP TABLE t'"),
        ("PARTITION BY KEY (id) # x", "can't be read"),
        ("MAX_ROWS=1 " * 100, "at most 1000"),
    ],
)
def test_a_study_gives_no_more_than_options(text, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        parse_table_options(text)


@pytest.mark.parametrize(
    ("options", "row_format", "kept", "page_bytes", "missing"),
    [
        ("ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8", "Compressed", "row_format=COMPRESSED key_block_size=8", 8192, []),
        (
            "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=7",
            "Compressed",
            "row_format=COMPRESSED key_block_size=7",
            8192,
            ["KEY_BLOCK_SIZE=7 became 8"],
        ),
        (
            "ROW_FORMAT=DYNAMIC KEY_BLOCK_SIZE=8",
            "Dynamic",
            "row_format=DYNAMIC key_block_size=8",
            16384,
            ["KEY_BLOCK_SIZE=8 is ignored, as rows are DYNAMIC"],
        ),
        ("ROW_FORMAT=FIXED", "Dynamic", "row_format=FIXED", None, ["ROW_FORMAT=FIXED became DYNAMIC"]),
        ("PAGE_COMPRESSED=1", "Dynamic", "`PAGE_COMPRESSED`='1'", None, []),
        ("PAGE_COMPRESSED=ON STATS_PERSISTENT=0", "Dynamic", "`PAGE_COMPRESSED`=ON stats_persistent=0", None, []),
        ("PAGE_COMPRESSED=1", "Dynamic", "", None, ["PAGE_COMPRESSED=1 is not there"]),
        ("PARTITION BY KEY (id) PARTITIONS 16", "Dynamic", "partitioned", None, []),
        ("PARTITION BY KEY (id) PARTITIONS 16", "Dynamic", "", None, ["it has no partitions"]),
    ],
)
def test_what_tables_have_in_name_only_is_said(options, row_format, kept, page_bytes, missing):
    assert list(missing_options(options, "InnoDB", row_format, kept, page_bytes)) == missing
