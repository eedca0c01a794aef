"""``python -m scripts.manual DIR``: write what a wheel puts below ``share/`` into DIR."""

import sys
from pathlib import Path

from scripts.manual import files

for place, text in files().items():
    path = Path(sys.argv[1]) / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
