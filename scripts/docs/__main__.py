"""``python -m scripts.docs``: write the generated pages anew."""

from scripts.docs import ROOT, pages

for path, text in pages().items():
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
