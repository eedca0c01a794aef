"""What of a study does not fit this host's servers: with file, line and field."""

import pytest

from dbdyno.plan.plan import make_plan
from dbdyno.run.preflight import unmet_needs
from dbdyno.study.load import load_study

POOL = 'innodb_buffer_pool_size = "256M"'


@pytest.fixture
def said(plan, state):
    """What is said about fields of the study; the rest is not asked here."""
    assert not state.exists()
    return lambda *changes: [one.said for one in unmet_needs(plan(*changes)) if one.field]


def test_a_typo_in_a_variable_is_named_with_its_line_and_the_nearest(said):
    (one,) = said((POOL, 'innodb_buffer_pol_size = "256M"'))
    place, _, words = one.partition(": server.settings.innodb_buffer_pol_size: ")
    assert place.endswith("study.toml:14")
    assert words.startswith("is not a MariaDB ")
    assert words.endswith('. Did you mean "innodb_buffer_pool_size"? Else leave it out')


def test_a_level_has_a_line_of_its_own(said):
    (one,) = said((POOL, 'innodb_flush_method = [\n"O_DIRECT",\n"O_DIRCT",\n]'))
    assert "study.toml:16: server.settings.innodb_flush_method: " in one


def test_a_value_that_only_the_server_can_judge_has_its_line_too(said):
    (one,) = said((POOL, 'binlog_format = "ROOW"'))
    words = "mariadb says: Error while setting value 'ROOW' to 'binlog_format'; leave it out"
    assert one.endswith(f"study.toml:14: server.settings.binlog_format: {words}")


def test_a_typo_in_the_engine(said):
    (one,) = said(('filesystem = "ext4"', 'filesystem = "ext4"\nengine = "inodb"'))
    assert ": stack.engine: MariaDB " in one
    assert one.endswith('Did you mean "innodb"?')


def test_a_typo_at_a_scale_is_shown_where_the_scale_has_it(write_study, state):
    assert not state.exists()
    path = write_study(("blocks = 6", 'blocks = 6\n[scale.full.server.settings]\nkey_bufer_size = "1M"'))
    (one,) = [one for one in unmet_needs(make_plan(load_study(path, "full"))) if one.field]
    assert one.name == f"{path}:23: scale.full.server.settings.key_bufer_size"


def test_where_the_server_is_not_here_its_variables_cant_be_checked(plan, state):
    assert not state.exists()
    lacking = unmet_needs(plan(('filesystem = "ext4"', 'filesystem = "ext4"\nserver = "mysql-9"')))
    (server,) = [one for one in lacking if one.name == "server mysql-9"]
    assert server.detail == "mysql-9 is not on this host, so whether it has innodb_buffer_pool_size is not known here"
    assert server.remedy == "get it: dbdyno servers add mysql-9"
