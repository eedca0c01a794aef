"""``python -m scripts.results``: write Python's types of results; with ``--check`` only say whether they are stale."""

import sys

from scripts.results import ROOT, TYPES, types

text = types()
if "--check" not in sys.argv[1:]:
    TYPES.write_text(text, encoding="utf-8")
elif TYPES.read_text(encoding="utf-8") != text:
    sys.exit(f"{TYPES.relative_to(ROOT)} is not what the schema of results gives; write it anew: make results")
