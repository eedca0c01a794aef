"""What hosts say is weighed before a cluster is made of it."""

from types import SimpleNamespace

import pytest

from dbdyno.errors import HostError
from dbdyno.hosts import bring_up
from dbdyno.hosts.inventory import read_inventory

FILE = 'version = 1\n[host.a]\nssh = "a"\nroles = ["client"]\n'


@pytest.fixture
def placed(tmp_path):
    (tmp_path / "hosts.toml").write_text(FILE)
    inventory = read_inventory(tmp_path / "hosts.toml")

    def do(*said):
        facts = {f"h{place}": SimpleNamespace(ssh_from=one) for place, one in enumerate(said)}
        return bring_up._address(inventory, facts)

    return do


@pytest.mark.parametrize("lie", ["10.255.255.1", "localhost", "evil.lab", "", "127.1", "8.8.8.8", "-x"])
def test_an_address_that_this_machine_does_not_have_is_not_its_own(placed, lie):
    assert placed(lie, "127.0.0.1") == "127.0.0.1"
    with pytest.raises(HostError, match="set address in \\[cluster\\]") as error:
        placed(lie)
    assert f"h0 reports {lie or 'none'}" in str(error.value)
