"""Nothing here touches this host's own state folder."""

import pytest


@pytest.fixture(autouse=True)
def _state(state):
    state.mkdir()
