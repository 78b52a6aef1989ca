"""Conditions of an object's status: find, set, read. Pure.

Tuples in, tuples out: a changed condition is a new tuple, an unchanged one is the same tuple, so that `is` tells
whether a write is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

import msgspec

from gatelift_kube.objects.meta import Condition

MESSAGE_CHARS_MAX = 32768
"""metav1.Condition.message: the API server refuses longer ones."""

CONDITIONS_MAX = 16
"""How many a status may have: the CRDs are generated from this, and what is written is held to it (`fitting`)."""

_CUT = " ..."

TRUE = "True"
FALSE = "False"


def find(conditions: tuple[Condition, ...], type_: str) -> Condition | None:
    """Return the condition of that type, if there is one."""
    for condition in conditions:
        if condition.type == type_:
            return condition
    return None


def is_true(conditions: tuple[Condition, ...], type_: str) -> bool:
    """Return whether the condition is there and its status is `True`."""
    condition = find(conditions, type_)
    return condition is not None and condition.status == TRUE


def is_false(conditions: tuple[Condition, ...], type_: str) -> bool:
    """Return whether the condition is there and its status is `False`; absence is neither."""
    condition = find(conditions, type_)
    return condition is not None and condition.status == FALSE


def truncated(message: str) -> str:
    """Return `message`, cut to what a condition may hold; a cut one ends in ` ...`."""
    if len(message) <= MESSAGE_CHARS_MAX:
        return message
    return message[: MESSAGE_CHARS_MAX - len(_CUT)] + _CUT


def put(conditions: tuple[Condition, ...], condition: Condition, now: str) -> tuple[Condition, ...]:
    """Return `conditions` with `condition` in the place of the one of its type, or appended.

    `now` is an RFC 3339 text. `lastTransitionTime` becomes `now` only when the status flips (or the condition is new
    and carries no time of its own); reason, message and generation may change without it. What we do not know of the
    old one (`more`) stays.
    """
    old = find(conditions, condition.type)
    same_status = old is not None and old.status == condition.status
    since = old.last_transition_time if old is not None and same_status else condition.last_transition_time
    new = msgspec.structs.replace(
        condition,
        message=truncated(condition.message),
        last_transition_time=since or now,
        more=condition.more if old is None else old.more,
    )
    if old is None:
        return (*conditions, new)
    if new == old:
        return conditions
    return tuple(new if each is old else each for each in conditions)


def without(conditions: tuple[Condition, ...], type_: str) -> tuple[Condition, ...]:
    """Return `conditions` without that type; the same tuple where it was not there."""
    if find(conditions, type_) is None:
        return conditions
    return tuple(each for each in conditions if each.type != type_)


def fitting(conditions: tuple[Condition, ...], ours: AbstractSet[str]) -> tuple[Condition, ...]:
    """Return what of `conditions` has room in a status: of types that are not `ours` the first go, as many as must.

    A list that is full of what somebody else has put there keeps nothing of ours out. Their order in the list is the
    one in which they came; their times are what somebody wrote.
    """
    over = len(conditions) - CONDITIONS_MAX
    if over <= 0:
        return conditions
    gone = [each.type for each in conditions if each.type not in ours][:over]
    return tuple(each for each in conditions if each.type not in gone)


def left_out(before: Iterable[Condition], after: Iterable[str], ours: AbstractSet[str]) -> tuple[str, ...]:
    """Return the types of others that stood there before and do not stand among the types `after`."""
    kept = frozenset(after)
    return tuple(each.type for each in before if each.type not in ours and each.type not in kept)
