"""JSON that is nested deeper than a decoder goes: what is below a depth is cut out, all else stays. Pure.

The API server keeps whatever depth somebody writes into `metadata.managedFields`; decoders end at about a thousand,
also in what they only skip. One such object would otherwise keep a whole list or watch from being read.
"""

from __future__ import annotations

import re

DEPTH_MAX = 200
"""Objects of the API have less than 30 levels, their managedFields as many again."""
CUT = b'"gatelift.dev/nested-too-deep"'
"""Stands for what was cut out."""
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_OPENS = frozenset(b"[{")
_QUOTE = ord('"')


def cut_deep(text: bytes) -> bytes:
    """Return the JSON with `CUT` for each value that is nested deeper than `DEPTH_MAX`; time and space are linear."""
    kept: list[bytes] = []
    depth, copied = 0, 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first == _QUOTE:
            continue
        if first in _OPENS:
            depth += 1
            if depth == DEPTH_MAX + 1:
                kept += (text[copied : token.start()], CUT)
        else:
            if depth == DEPTH_MAX + 1:
                copied = token.end()
            depth -= 1
    if depth > DEPTH_MAX:  # it ends inside: no JSON, which the decoder says
        return b"".join(kept)
    return b"".join([*kept, text[copied:]])
