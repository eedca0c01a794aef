"""The example that the section of a kind of load has in docs/tools.md."""

import re
import tomllib

from scripts.docs import ROOT


def example_of(kind):
    """Return its ``[workload]``, of a factor the first level; nothing where the section has none."""
    page = (ROOT / "docs/tools.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        workload = tomllib.loads(block).get("workload", {})
        if workload.get("kind") == kind:
            return {name: value[0] if isinstance(value, list) else value for name, value in workload.items()}
    return {}
