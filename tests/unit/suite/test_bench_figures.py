"""The JSON of every benchmark: a list of figures beside their limits."""

import json
import math
from pathlib import Path

from benches.figures import Figure, at_least, at_most, within, write

ROOT = Path(__file__).parents[3]


def test_figures_are_written_beside_their_limits_and_details_beside_them(tmp_path):
    figures = [
        at_most("p99, us", 49.0, 50),
        at_least("share, %", 59.0, 60),
        at_most("first paint, ms", None, 150),
        within("rate, MB/s", math.nan, 1, 2, None),
        Figure("requests", 7.0),
    ]
    write(tmp_path / "new" / "bench.json", figures, {"seed": 1})
    assert json.loads((tmp_path / "new" / "bench.json").read_text(encoding="utf-8")) == [
        {"name": "p99, us", "value": 49.0, "limit": 50, "met": True},
        {"name": "share, %", "value": 59.0, "limit": 60, "met": False},
        {"name": "first paint, ms", "value": None, "limit": 150, "met": None},
        {"name": "rate, MB/s", "value": None, "limit": [1, 2], "met": None},
        {"name": "requests", "value": 7.0, "limit": None, "met": None},
    ]
    assert json.loads((tmp_path / "new" / "bench-details.json").read_text(encoding="utf-8")) == {"seed": 1}


def test_every_benchmark_with_json_writes_it_so():
    benches = [*ROOT.glob("benches/**/*.py"), *ROOT.glob("crates/*/benches/*.py")]
    writing = {path.name: path.read_text(encoding="utf-8") for path in benches}
    writing = {name: text for name, text in writing.items() if '"--json"' in text}
    assert len(writing) >= 7
    assert [name for name, text in writing.items() if "benches.figures import" not in text] == []
