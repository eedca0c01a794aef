"""What is said of a study with mistakes."""

import pytest

from dbdyno.errors import UserError
from dbdyno.study.load import load_study


def fields(section):
    return ", ".join(section.model_fields)


def refusal(path):
    with pytest.raises(UserError) as refused:
        load_study(path)
    assert refused.value.exit_code == 2
    return str(refused.value)
