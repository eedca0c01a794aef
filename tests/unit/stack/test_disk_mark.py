"""The mark as bytes: whole or none, and no signature of anything."""

import json

import pytest

from dbdyno.stack.emptiness import PAGE, SAMPLES, fields_of, page_of

FIELDS = {"disk": "0" * 32, "uuid": "u" * 36, "seed": "0" * 32, "all": "f" * 32, "each": "0123" * SAMPLES}


def test_a_mark_fills_a_page_and_is_read_back():
    page = page_of(FIELDS)
    assert len(page) == PAGE
    assert fields_of(page) == FIELDS


def test_one_changed_bit_makes_it_none():
    page = page_of(FIELDS)
    for at in range(PAGE):
        assert fields_of(page[:at] + bytes([page[at] ^ 1]) + page[at + 1 :]) is None, at


@pytest.mark.parametrize(
    "page",
    [bytes(PAGE), b"\xff" * PAGE, b"{}".ljust(PAGE), b"[1]".ljust(PAGE), b"[" * PAGE, json.dumps(FIELDS).encode()],
)
def test_what_is_no_mark_is_none(page):
    assert fields_of(page) is None


def test_it_is_of_characters_that_no_filesystem_begins_with():
    """Neither 0x55AA of a boot sector nor 0x53EF of ext, nor the letters of HFS, minix and others at their places."""
    page = page_of(FIELDS)
    assert all(0x20 <= byte < 0x7F or byte == ord("\n") for byte in page)
    assert not any(chr(byte).isupper() for byte in page)
