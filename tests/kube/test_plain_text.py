"""Texts of others, as people may see them (HD-93, HD-96)."""

from __future__ import annotations

import pytest

from gatelift_kube.values.plain_text import SHOWN_CHARS_MAX, ending, plain


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("as it is", "as it is"),
        ("Zürich 東京", "Zürich 東京"),
        ("\x1b]0;owned\x07", "\ufffd]0;owned\ufffd"),
        ("a\r\nb\tc", "a  b c"),
        ("abc\u202edef", "abc\ufffddef"),
        ("\u200b\u2028\ud800", "\ufffd\ufffd\ufffd"),
        ("", ""),
    ],
)
def test_hd_93_nothing_that_moves_a_cursor_or_turns_a_line_is_shown(said: str, shown: str) -> None:
    assert plain(said) == shown


def test_hd_96_a_long_text_is_cut_and_says_so() -> None:
    assert plain("x" * SHOWN_CHARS_MAX) == "x" * SHOWN_CHARS_MAX
    cut = plain("x" * (SHOWN_CHARS_MAX + 1))
    assert len(cut) == SHOWN_CHARS_MAX
    assert cut.endswith("x ...")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("abcdefghijkl", "abcde ..."),
        ("abcde\u0301fghijkl", "abcd ..."),
        ("abcdef\u0301ghijkl", "abcde ..."),
        ("abcd\u0301\u0302\u0303ghijkl", "abc ..."),
        ("\u0301" * 12, " ..."),
    ],
)
def test_is_22_a_cut_falls_between_what_people_see_as_characters(said: str, shown: str) -> None:
    assert plain(said, 9) == shown


@pytest.mark.parametrize(
    ("said", "most", "shown"),
    [
        ("as it is", 8, "as it is"),
        ("one line too many", 8, "... many"),
        ("x東京", 10, "x東京"),
        ("xxxxxxxx東京", 10, "... 東京"),
        ("xxxxxxx東京", 9, "... 京"),
        ("xxxxxxe\u0301nd", 7, "... nd"),
    ],
)
def test_is_46_the_end_of_a_text_is_shown_and_no_character_is_cut_in_two(said: str, most: int, shown: str) -> None:
    assert ending(said, most) == shown
    assert len(shown.encode()) <= most
