"""``python -m scripts.sentences``: print every sentence that a user can meet, each behind its file and line."""

from pathlib import Path

from scripts.sentences.collect import sentences

ROOT = Path(__file__).parents[2]

for one in sentences(ROOT):
    print(f"{one.place}: {one.text}")
