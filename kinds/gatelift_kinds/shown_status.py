"""What of a worker's status its user's object shows: fields on a list, texts and lists of bounded length. Pure.

All else is left out, above all addresses: Services of this cluster would send traffic to what a worker names there.
Neighbours: `pod`, `job_status` make the patch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gatelift_kinds.patches import Json
from gatelift_kube.values.plain_text import plain
from gatelift_kube.values.timestamps import is_time

CHARS_MAX = 64 * 1024
"""Of all texts of one status, but for lists of indexes: an honest one has a twentieth. What is beyond is left out."""
TEXT_CHARS_MAX = 4096
"""Of a message: what a kubelet keeps of a container's last words."""
WORD_CHARS_MAX = 1024
"""Of a type, reason, name, image, time: the most that any of their rules allows."""
ITEMS_MAX = 64
"""Of a list: conditions of an object, containers of a pod. An honest one has a tenth."""
COUNT_MAX = 2**31 - 1
INDEX_CHARS = len("100000,")
"""Of one index in a list of them: an Indexed Job has at most 100,000 completions."""


class _Room:
    """How many characters may still be shown."""

    def __init__(self) -> None:
        self.left = CHARS_MAX

    def take(self, text: str) -> str:
        self.left -= len(text)
        return text


_Part = Callable[[Any, _Room], Any]
"""Returns what is shown of a value, None where nothing is."""


def _text(value: Any, room: _Room) -> str | None:
    if not isinstance(value, str) or not room.left:
        return None
    return room.take(plain(value, min(TEXT_CHARS_MAX, room.left), lines=True))


def _word(value: Any, room: _Room) -> str | None:
    """Return a word that is one: it names something, so it is shown whole or not at all."""
    if not isinstance(value, str) or len(value) > min(WORD_CHARS_MAX, room.left) or plain(value) != value:
        return None
    return room.take(value)


def _time(value: Any, room: _Room) -> str | None:
    """Return a time that is one: for another the API server would refuse the whole object, in its own words."""
    return _word(value, room) if isinstance(value, str) and is_time(value) else None


def _flag(value: Any, _room: _Room) -> bool | None:
    return value if isinstance(value, bool) else None


def _count(value: Any, _room: _Room) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and -COUNT_MAX - 1 <= value <= COUNT_MAX else None


def _object(fields: Mapping[str, _Part], needed: str = "") -> _Part:
    def part(value: Any, room: _Room) -> Json | None:
        if not isinstance(value, dict):
            return None
        shown = {}
        for name, of_field in fields.items():
            found = of_field(value.get(name), room)
            if found is not None:
                shown[name] = found
        return shown if not needed or needed in shown else None

    return part


def _list(item: _Part) -> _Part:
    def part(value: Any, room: _Room) -> list[Any] | None:
        if not isinstance(value, list):
            return None
        shown = (item(one, room) for one in value[:ITEMS_MAX])
        return [one for one in shown if one is not None]

    return part


def _last_of_each_type(part: _Part) -> _Part:
    """Keep one condition of each type, the last: readers look at the first, and an honest status has no second."""

    def of(value: Any, room: _Room) -> list[Any] | None:
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
                "signal": _count,
                "reason": _word,
                "startedAt": _time,
                "finishedAt": _time,
                "containerID": _word,
                "message": _text,
            }
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
_COUNTS = ("active", "ready", "terminating", "succeeded", "failed")
_INDEXES = ("completedIndexes", "failedIndexes")
_JOB = _object(
    {**dict.fromkeys(_COUNTS, _count), "startTime": _time, "completionTime": _time, "conditions": _CONDITIONS}
)


def of_pod(reported: Json) -> Json:
    """Return what a user's pod shows of its worker pod's status."""
    shown: Json = _POD(reported, _Room()) or {}
    return shown


def of_job(reported: Json, completions: int) -> Json:
    """Return what a user's Job shows of its worker Job's status; `completions`: of an Indexed Job, else 0.

    Lists of indexes are shown whole, where they are ones and no longer than that many indexes can be.
    """
    shown: Json = _JOB(reported, _Room()) or {}
    for name in _INDEXES:
        value = reported.get(name)
        if isinstance(value, str) and len(value) <= completions * INDEX_CHARS and not value.strip("0123456789,-"):
            shown[name] = value
    return shown
