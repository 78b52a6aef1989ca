"""What of a worker's status its user's object shows: fields on a list, texts and lists of bounded length. Pure.

All else is left out, above all addresses: Services of this cluster would send traffic to what a worker names there. It
is not even decoded: each part is JSON until it is known to be shown, so that a status costs no more than to skip its
bytes a few times, whatever a worker fills it with. Neighbours: `any_pod.kind`, `job.status` make the patch.

It is shown in the form in which an API server stores it (times of whole seconds in UTC, what is empty left out, what
each container has there): else what it shows would never be what was reported, and be written for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec

from gatelift_kinds.shared.patches import Json, decode, encode
from gatelift_kube.values.plain_text import plain
from gatelift_kube.values.timestamps import stored_time
from gatelift_kube.values.unreadable import UNREADABLE

CHARS_MAX = 64 * 1024
"""Of all texts of one status, but for lists of indexes: an honest one has a twentieth. What is beyond is left out."""
TEXT_CHARS_MAX = 4096
"""Of a message: what a kubelet keeps of a container's last words."""
WORD_CHARS_MAX = 1024
"""Of a type, reason, name, image, time: the most that any of their rules allows."""
ITEMS_MAX = 64
"""Of a list: conditions of an object, containers of a pod. An honest one has a tenth."""
ITEM_BYTES_MAX = 128 * 1024
"""Of one condition or container: an honest one has a tenth. Each level of what is longer would be gone through anew."""
COUNT_MAX = 2**31 - 1
COUNT_CHARS_MAX = len(str(-COUNT_MAX))
INDEX_CHARS = len("100000,")
"""Of one index in a list of them: an Indexed Job has at most 100,000 completions."""
KEPT = 256
KEPT_BYTES_MAX = 16 * 1024
"""Statuses of pods whose reading is kept, and how long one is at most: 16 MB with what is shown of them, which may be
three times as long. Each is asked for when it is written, and again when the user's object shows it."""

KNOWN, KNOWN_BYTES_MAX = 1024, 64
"""Words and times whose reading is kept, and how long a word's JSON is at most: all pods have the same few, and each
status repeats those of the one before."""

ESCAPED_CHARS = len(r"\ud83d\ude00")
"""The most that one character takes in JSON."""
UTF_8_BYTES = 4
"""The most that it takes as it is."""
WORD_BYTES_MAX = ESCAPED_CHARS * WORD_CHARS_MAX + len('""')

_ABSENT = msgspec.Raw()
_Reader = Callable[[msgspec.Raw | bytes], Any]


class _Room:
    """How many characters may still be shown; `index_chars`: of each list of indexes."""

    def __init__(self, index_chars: int = 0) -> None:
        self.left = CHARS_MAX
        self.index_chars = index_chars


_Part = Callable[[msgspec.Raw, _Room], Any]
"""Returns what is shown of a value, which is JSON or absent; None where nothing is."""


def _reader(of: Any) -> _Reader:
    """Return what reads JSON of a type; None for another one."""
    decode = msgspec.json.Decoder(of).decode

    def read(value: msgspec.Raw | bytes) -> Any:
        try:
            return decode(value) if value else None
        except UNREADABLE:
            return None

    return read


_read_text = _reader(str | None)
_read_flag = _reader(bool | None)
_read_count = _reader(int | None)
_read_list = _reader(list[msgspec.Raw] | None)


def _text(value: msgspec.Raw, room: _Room) -> str | None:
    longest = min(TEXT_CHARS_MAX, room.left)
    found = _read_text(_beginning(value, ESCAPED_CHARS * (longest + 1))) if room.left else None
    if not found:
        return None
    shown = plain(found, longest, lines=True)
    room.left -= len(shown)
    return shown


def _beginning(value: msgspec.Raw, longest: int) -> msgspec.Raw:
    """Return a text of at most so many bytes of JSON as it is, of a longer one the beginning.

    It is cut between two characters, where it is a text: before its last escape or the one before, of which there are
    two for a character; else between two of UTF-8.
    """
    if len(value) <= longest:
        return value
    begins = bytes(memoryview(value)[:longest])
    last = begins.rfind(b"\\", longest - ESCAPED_CHARS)
    escapes = (last, begins.rfind(b"\\", 0, last)) if last >= 0 else ()
    cuts = (msgspec.Raw(begins[:end] + b'"') for end in (*escapes, *range(longest, longest - UTF_8_BYTES, -1)))
    return next((cut for cut in cuts if _read_text(cut) is not None), value)


def _word(value: msgspec.Raw, room: _Room) -> str | None:
    """Return a word that is one: it names something, so it is shown whole or not at all."""
    size = len(value)
    if size <= KNOWN_BYTES_MAX:
        found = _known_word(bytes(value))
    else:
        found = _word_of(value) if size <= WORD_BYTES_MAX else None
    if found is None:
        return None
    left = room.left - len(found)
    if left < 0:
        return None
    room.left = left
    return found


def _word_of(value: msgspec.Raw | bytes) -> str | None:
    found: str | None = _read_text(value)
    if not found or len(found) > WORD_CHARS_MAX or not (found.isprintable() or plain(found) == found):
        return None
    return found


_known_word = lru_cache(maxsize=KNOWN)(_word_of)
_known_time = lru_cache(maxsize=KNOWN)(stored_time)


def _time(value: msgspec.Raw, room: _Room) -> str | None:
    """Return a time that is one: for another the API server would refuse the whole object, in its own words."""
    found = _word(value, room)
    return _known_time(found) or None if found is not None else None


def _indexes(value: msgspec.Raw, room: _Room) -> str | None:
    """Return a list of indexes whole, where it is one and no longer than there can be indexes."""
    found = _read_text(value) if len(value) <= room.index_chars + len('""') else None
    return None if found is None or found.strip("0123456789,-") else found


def _indexes_of_some(value: msgspec.Raw, room: _Room) -> str | None:
    """Return a list of indexes that is not stored where it is empty."""
    return _indexes(value, room) or None


def _flag(value: msgspec.Raw, _room: _Room) -> bool | None:
    found: bool | None = _read_flag(value)
    return found


def _count(value: msgspec.Raw, _room: _Room) -> int | None:
    found: int | None = _read_count(value) if len(value) <= COUNT_CHARS_MAX else None
    return found if found is not None and -COUNT_MAX - 1 <= found <= COUNT_MAX else None


def _count_of_some(value: msgspec.Raw, room: _Room) -> int | None:
    """Return a count that is not stored where it is 0."""
    return _count(value, room) or None


def _object(fields: Mapping[str, _Part], needed: str = "", always: Mapping[str, Any] = MappingProxyType({})) -> _Part:
    """Read some fields; `always`: what is stored of each, also where it was not said."""
    read = _reader(msgspec.defstruct("_Fields", [(name, msgspec.Raw, _ABSENT) for name in fields]) | None)
    parts, said_of = tuple(fields.items()), msgspec.structs.astuple

    def part(value: msgspec.Raw, room: _Room) -> Json | None:
        found = read(value)
        if found is None:
            return None
        shown = {**always}
        for (name, of_field), said in zip(parts, said_of(found), strict=True):
            one = of_field(said, room) if said else None
            if one is not None:
                shown[name] = one
        return shown if not needed or needed in shown else None

    return part


def _list(item: _Part) -> _Part:
    def part(value: msgspec.Raw, room: _Room) -> list[Any] | None:
        found = _read_list(value)
        if found is None:
            return None
        of_each = [item(one, room) for one in found[:ITEMS_MAX] if len(one) <= ITEM_BYTES_MAX]
        return [one for one in of_each if one is not None] or None

    return part


def _last_of_each_type(part: _Part) -> _Part:
    """Keep one condition of each type, the last: readers look at the first, and an honest status has no second."""

    def of(value: msgspec.Raw, room: _Room) -> list[Any] | None:
        found = part(value, room)
        return None if found is None else list({one["type"]: one for one in found}.values())

    return of


_CONDITIONS = _last_of_each_type(
    _list(
        _object(
            {
                "type": _word,
                "status": _word,
                "reason": _word,
                "lastProbeTime": _time,
                "lastTransitionTime": _time,
                "message": _text,
            },
            needed="type",
            always={"status": ""},
        )
    )
)
_STATE = _object(
    {
        "waiting": _object({"reason": _word, "message": _text}),
        "running": _object({"startedAt": _time}),
        "terminated": _object(
            {
                "exitCode": _count,
                "signal": _count_of_some,
                "reason": _word,
                "startedAt": _time,
                "finishedAt": _time,
                "containerID": _word,
                "message": _text,
            },
            always={"exitCode": 0},
        ),
    }
)
_CONTAINERS = _list(
    _object(
        {
            "name": _word,
            "ready": _flag,
            "started": _flag,
            "restartCount": _count,
            "image": _word,
            "imageID": _word,
            "containerID": _word,
            "state": _STATE,
            "lastState": _STATE,
        },
        needed="name",
        always={"ready": False, "restartCount": 0, "image": "", "imageID": ""},
    )
)
_POD = _object(
    {
        "phase": _word,
        "reason": _word,
        "startTime": _time,
        "message": _text,
        "conditions": _CONDITIONS,
        "containerStatuses": _CONTAINERS,
        "initContainerStatuses": _CONTAINERS,
        "ephemeralContainerStatuses": _CONTAINERS,
    }
)
_COUNTS_OF_SOME, _COUNTS = ("active", "succeeded", "failed"), ("ready", "terminating")
_JOB = _object(
    {
        **dict.fromkeys(_COUNTS_OF_SOME, _count_of_some),
        **dict.fromkeys(_COUNTS, _count),
        "startTime": _time,
        "completionTime": _time,
        "conditions": _CONDITIONS,
        "completedIndexes": _indexes_of_some,
        "failedIndexes": _indexes,
    }
)


def of_pod(reported: bytes) -> Json:
    """Return what a user's pod shows of its worker pod's status (JSON); nothing of what is none."""
    return decode(_kept(reported) if len(reported) <= KEPT_BYTES_MAX else _of_pod(reported))


def _of_pod(reported: bytes) -> bytes:
    return encode(_POD(msgspec.Raw(reported), _Room()) or {})


_kept = lru_cache(maxsize=KEPT)(_of_pod)
"""As JSON: who asks may do what he likes with what he gets."""


def of_job(reported: bytes, completions: int) -> Json:
    """Return what a user's Job shows of its worker Job's status; `completions`: of an Indexed Job, else 0."""
    shown: Json = _JOB(msgspec.Raw(reported), _Room(completions * INDEX_CHARS)) or {}
    return shown
