"""What a cache was asked for is what the kernel says of it, or the trial fails."""

import pytest

from dbdyno.errors import TrialError
from dbdyno.stack.layers.cache import POLICY, Cache
from dbdyno.study.schema import CacheSection

WRITECACHE = {"kind": "writecache", "high_watermark": 60, "low_watermark": 30, "max_age": 5000}
ASKED = [
    ("writecache", {"high_watermark": 60, "low_watermark": 30, "max_age": 5000}, False, WRITECACHE),
    ("dm-cache", {}, False, {"kind": "dm-cache", "cache_mode": "writeback", "policy": POLICY}),
    ("dm-cache", {}, True, {"kind": "dm-cache", "cache_mode": "writethrough", "policy": POLICY}),
]


@pytest.mark.parametrize(("kind", "fields", "fresh", "observed"), ASKED)
def test_each_setting_that_did_not_take_is_named(kind, fields, fresh, observed):
    cache = Cache(kind, CacheSection(**fields), fresh=fresh, title="t")
    cache._check(observed)
    for name, value in observed.items():
        with pytest.raises(TrialError, match=f"^cache: asked for {name} {value}, it is 7$"):
            cache._check({**observed, name: 7})
