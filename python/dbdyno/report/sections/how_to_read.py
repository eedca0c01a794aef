"""How to read a verdict: what each word, the interval and p mean."""

from collections.abc import Sequence

from dbdyno.model.word import Word
from dbdyno.model.wording import margin_text
from dbdyno.report.document import Abridged, Item, List, Paragraph, Section, Strong, Text
from dbdyno.report.sections.stopped import interval_words
from dbdyno.report.source import Source

BLOCKS = (
    "Every block runs each treatment once, in random order, on fresh data and a freshly started server. Treatments are"
    " compared inside blocks, so what changes slowly on the host cannot favour one of them."
)
SIMULATED_BLOCKS = (
    "Every block simulates each treatment once, from a seed of its own, so that all of them meet the same chances."
    " Blocks differ by nothing else: an interval covers these, not how well the simulator knows kernel and drive."
)


def section(source: Source) -> Section:
    """Return the explanation, which a page alone has the room for."""
    words, margin = interval_words(source.analysis), margin_text(source.analysis.margin)
    different = (
        "The difference is too consistent over the blocks to be chance"
        f" ({words.test}, p at most 0.05 after Holm's correction for the number of comparisons), and the 95 % interval"
        " excludes 0."
    )
    meanings = (
        ((Word.FASTER, Word.SLOWER), different),
        (
            (Word.EQUIVALENT,),
            f"If there is a difference, it is smaller than the margin of {margin}: this was shown, not merely refuted.",
        ),
        ((Word.UNDECIDED,), "These blocks show neither. The reason says how many more it would take."),
        ((Word.NOT_COMPARABLE,), "Too few usable blocks, a treatment that kept failing, or clients at their limit."),
    )
    closing = (
        "The interval is the range of differences that these blocks are compatible with. p is the chance of a"
        f" difference at least this large if the two were the same. {words.looks}"
    )
    terms = List(tuple(Item(_term(names, meaning)) for names, meaning in meanings))
    blocks = Paragraph(SIMULATED_BLOCKS if source.run.is_simulated else BLOCKS)
    return Section("reading", "How to read a verdict", (Abridged((blocks, terms, Paragraph(closing))),))


def _term(words: Sequence[str], meaning: str) -> Text:
    named = [piece for word in words for piece in (" or ", Strong(word, word))]
    return (*named[1:], f": {meaning}")
