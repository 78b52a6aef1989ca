"""What decoders raise for bytes of others. Pure."""

from __future__ import annotations

import msgspec

UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)
"""The decoder raises the second for bytes that are no UTF-8, inside a text that it has to read, the third for what is
nested some thousand deep, also where it is only skipped."""
