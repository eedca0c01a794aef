"""What hosts say of this machine's address is weighed before a server listens there."""

from types import SimpleNamespace

import pytest

from dbdyno.errors import HostError
from dbdyno.run import over_hosts


def placed(*origins, address=None):
    inventory = SimpleNamespace(cluster=SimpleNamespace(address=address))
    by_host = {f"h{place}": origin for place, origin in enumerate(origins)}
    return over_hosts._address(SimpleNamespace(inventory=inventory, origins=lambda: by_host))


@pytest.mark.parametrize("lie", ["10.255.255.1", "localhost", "evil.lab", "", "127.1", "8.8.8.8", "-x"])
def test_an_address_that_this_machine_does_not_have_is_not_its_own(lie):
    assert placed(lie, "127.0.0.1") == "127.0.0.1"
    assert placed(lie, address="10.0.0.1") == "10.0.0.1"
    with pytest.raises(HostError, match="set address in \\[cluster\\]") as error:
        placed(lie)
    assert f"h0 reports {lie or 'none'}" in str(error.value)
