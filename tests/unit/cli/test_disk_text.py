"""What ``disk stats`` says of the way of answers."""

from dbdyno.cli.disk_text import _ways_text


def test_each_size_that_came_is_named():
    ways = {"read": {"4096": 12_940, "more": 88_000}, "write": {"16384": 9_100}, "without_data": 4_000}
    assert _ways_text(ways, 1.234, 0.25) == (
        "answers' way back, us: read to 4 KiB 12.9, read larger 88.0, write to 16 KiB 9.1, without data 4.0; "
        "waits of 1.23 s were spun, at most 25% of a processor now"
    )


def test_nothing_is_said_of_what_was_not_seen():
    text = _ways_text({"read": {}, "write": {}, "without_data": None}, 0.0, 0.05)
    assert text.startswith("answers' way back, us: none seen; ")
