"""Texts of others as people may see them: on terminals, in conditions, in events. Pure."""

from __future__ import annotations

import unicodedata

SHOWN_CHARS_MAX = 4096
"""Of what another side says, inside a message of ours: an error of an API server with its causes is shorter."""
_CUT = " ..."
_MARKS_MAX = 8
"""On one character, where a text is cut: no writing has more."""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that move the cursor, turn the direction of writing, or are seen by nobody."""


def plain(text: str, most: int = SHOWN_CHARS_MAX, *, lines: bool = False) -> str:
    """Return a text in one line without control characters, cut to `most` characters; a cut one ends in ` ...`.

    `lines`: ends of lines and tabulators stay as they are, for what is read as a whole, such as a program's last words.
    What people see as one character is not cut in two.
    """
    if len(text) > most:
        text = _cut(text, max(0, most - len(_CUT))) + _CUT[:most]
    if text.isascii() and text.isprintable():
        return text
    kept = "\t\n" if lines else ""
    return "".join(
        each if each in kept else " " if each in "\t\n\r" else each if _is_seen(each) else "\ufffd" for each in text
    )


def ending(text: str, most: int) -> str:
    """Return the end of a text, at most `most` bytes of UTF-8; one that is cut begins with `... `.

    What people see as one character is not cut in two.
    """
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return data.decode()
    kept = data[len(data) - max(0, most - len(_CUT)) :].decode("utf-8", "ignore")
    marks = 0
    while marks < min(_MARKS_MAX, len(kept)) and unicodedata.category(kept[marks])[0] == "M":
        marks += 1
    return _CUT.strip() + " " + kept[marks:]


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text, without a last character whose marks (accents, ...) would be cut off."""
    end = most
    while end > 0 and most - end < _MARKS_MAX and unicodedata.category(text[end])[0] == "M":
        end -= 1
    return text[:end]


def _is_seen(character: str) -> bool:
    return unicodedata.category(character) not in _UNSEEN
