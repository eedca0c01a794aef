"""What a user can read keeps to plain words: rules that a machine can hold, over every sentence of the program."""

import re

import pytest

from scripts.docs import ROOT
from scripts.sentences.collect import of_python, of_rust, sentences

FORBIDDEN = (
    "said again",
    "whoever",
    "what runs beside",
    "what else runs",
    "and the like",
    "say what to stand on",
    "less in the rest",
    "usually {} off",
    "holds without it, too",
    "met and ignored",
    "this host can run it",
    "No more than 1 requests",
)
FIRST_SCREEN = ("sections/advice.py", "sections/headline.py", "sections/badges.py", "why.py", "quick.py", "notes.py")
FIRST_SCREEN_MAX = 140  # characters of a sentence, without the values in it
ALL = sentences(ROOT)


def said(found):
    return [f"{one.place}: {one.text}" for one in found]


def test_the_program_has_sentences_in_both_languages():
    assert len(ALL) > 3000
    assert {one.file.partition("/")[0] for one in ALL} == {"python", "crates"}


def test_no_sentence_begins_with_of_or_where():
    begins = re.compile(r"(?:^|[.!?] )(?:Of|Where) ")
    assert said(one for one in ALL if begins.search(one.text)) == []


@pytest.mark.parametrize("phrase", FORBIDDEN)
def test_a_phrase_that_nobody_says_is_in_none(phrase):
    assert said(one for one in ALL if phrase.lower() in one.text.lower()) == []


def test_no_sentence_says_what_is_not_but_where():
    assert said(one for one in ALL if re.search(r"\bnot\b[^.;]* but where\b", one.text)) == []


def test_a_difference_is_not_said_from_a_figure_on():
    assert said(one for one in ALL if re.search(r"from (?:\{\}|\+?[\d.]+ %) on(?:$|[.,;])", one.text)) == []


def test_nothing_is_said_of_zero():
    assert (
        said(one for one in ALL if re.search(r"(?:^|\s)0 (?:errors?|trials?|blocks?|connections?)\b", one.text)) == []
    )


@pytest.mark.parametrize("file", FIRST_SCREEN)
def test_a_sentence_of_the_first_screen_is_short(file):
    shown = [one for one in ALL if one.file == f"python/dbdyno/report/{file}"]
    assert shown, "this file has no sentence; name the one that has"
    long = (
        one
        for one in shown
        for sentence in re.split(r"(?<=[.;:]) ", one.text.replace("{}", ""))
        if len(sentence) > FIRST_SCREEN_MAX
    )
    assert said(long) == []


def test_a_sentence_is_found_with_the_place_of_each_value():
    source = (
        'def f(x):\n    """Not shown to anyone."""\n    raise UserError(f"{x} is no disk; "\n        "name another")\n'
    )
    assert list(of_python(source)) == [(3, "{} is no disk; name another")]


def test_a_literal_of_rust_is_found_whole():
    source = (
        '// a "comment" is none of them\nfail!("the file is \\\n    not there: {path}")\n#[cfg(test)]\n"not looked at"'
    )
    assert [text for _, text in of_rust(source)] == ["the file is not there: {path}"]


def test_a_literal_of_rust_is_found_in_its_line_behind_empty_ones_comments_and_quotation_marks():
    assert list(of_rust('\n\n// c\nlet q = \'"\';\nfail!("one two three")\n')) == [(5, "one two three")]
    assert list(of_rust("let (q, n) = (b'\"', '\\'');\nfn f<'a>(x: &'a str) { fail!(\"one two three\") }")) == [
        (2, "one two three")
    ]
