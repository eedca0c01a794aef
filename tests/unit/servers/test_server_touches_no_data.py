"""Settings that touch no data, and what of a study's settings names its prepared data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.plan.identity import image_key
from dbdyno.servers.mysql.own import DUMP, TOUCH_NO_DATA, data_settings, variables_of
from dbdyno.servers.sources.installation import find_server

GONE = {"innodb_buffer_pool_instances"}  # from MariaDB 10.6 on
SHAPES_DATA = [
    "innodb_page_size", "innodb_log_file_size", "innodb_redo_log_capacity", "innodb_undo_tablespaces", "log_bin",
    "character_set_server", "innodb_doublewrite", "innodb_checksum_algorithm", "innodb_change_buffering",
    "innodb_file_per_table", "innodb_default_row_format", "binlog_format", "sql_mode", "lower_case_table_names",
    "innodb_fast_shutdown", "innodb_buffer_pool_filename", "innodb_log_write_ahead_size", "innodb_stats_persistent",
    "rocksdb_block_cache_size", "a_setting_of_tomorrow",
]  # fmt: skip
PRODUCTS = st.sampled_from(sorted(TOUCH_NO_DATA))


@pytest.mark.parametrize("product", TOUCH_NO_DATA)
def test_what_shapes_data_and_what_is_unknown_counts(product):
    given_ = dict.fromkeys(SHAPES_DATA, 1)
    assert data_settings(product, given_) == given_


def test_each_that_is_listed_is_a_variable_of_the_server():
    known = variables_of(find_server("mariadb"), "innodb").keys()
    assert TOUCH_NO_DATA["mariadb"] - known == GONE


@given(PRODUCTS, st.data())
def test_of_any_settings_those_that_may_touch_data_are_left(product, data):
    free = data.draw(st.dictionaries(st.sampled_from(sorted(TOUCH_NO_DATA[product])), st.integers(1, 9)))
    bound = data.draw(st.dictionaries(st.sampled_from(SHAPES_DATA), st.integers(1, 9)))
    assert data_settings(product, free | bound) == bound
    asked = free | bound | {DUMP: True}
    assert data_settings(product, asked) == asked, "the dump of the pool depends on what the pool is"


POOLS = ('innodb_buffer_pool_size = "256M"', 'innodb_buffer_pool_size = ["64M", "256M"]')
LOGS = ('innodb_buffer_pool_size = "256M"', 'innodb_log_file_size = ["64M", "128M"]')


@pytest.mark.parametrize(("change", "images"), [(POOLS, 1), (LOGS, 2)], ids=["pools", "logs"])
def test_treatments_share_an_image_where_they_differ_in_nothing_else(plan, change, images):
    specs = plan(change).specs.values()
    keys = {image_key(one, "a server", data_settings("mariadb", one.server.settings)) for one in specs}
    assert len(keys) == images
