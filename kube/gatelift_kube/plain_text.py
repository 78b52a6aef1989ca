"""Texts of others as people may see them: on terminals, in conditions, in events. Pure."""

from __future__ import annotations

import unicodedata

SHOWN_CHARS_MAX = 4096
"""Of what another side says, inside a message of ours: an error of an API server with its causes is shorter."""
_CUT = " ..."
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that move the cursor, turn the direction of writing, or are seen by nobody."""


def plain(text: str, most: int = SHOWN_CHARS_MAX) -> str:
    """Return a text in one line without control characters, cut to `most` characters; a cut one ends in ` ...`."""
    if len(text) > most:
        text = text[: most - len(_CUT)] + _CUT
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if each in "\t\n\r" else each if _is_seen(each) else "\ufffd" for each in text)


def _is_seen(character: str) -> bool:
    return unicodedata.category(character) not in _UNSEEN
