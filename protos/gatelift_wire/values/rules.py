"""What each field of each value may hold, in one table, and what a value weighs on the wire. Pure.

`measure` is used twice: by `session_core` before a message is queued (so that nothing leaves that the peer would
refuse), and by `codec` on all that came. Neighbours: `limits` (the numbers), `violations` (the errors).
"""

from __future__ import annotations

import enum
import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import Any

import msgspec

from gatelift_wire.values import inventory, limits, messages, release
from gatelift_wire.values.keys import PlacementKey, is_uid
from gatelift_wire.values.violations import TooLarge, WireViolation

Rule = Callable[[Any], int]
"""Checks one field's value and returns an upper bound of its encoded size; the violation it raises has no path yet."""

TAG_BYTES = 7
"""Field number (at most 2 bytes) and length (at most 5) of anything encoded."""

SCALAR_BYTES = 12
"""Field number and the longest varint or double."""


def _text(longest: int, *, least: int = 0) -> Rule:
    def rule(value: str) -> int:
        try:
            size = len(value) if value.isascii() else len(value.encode())
        except UnicodeEncodeError:
            raise WireViolation("", "must be valid Unicode text") from None
        if size > longest:
            raise TooLarge("", f"must have at most {longest} bytes, has {size}")
        if size < least:
            raise WireViolation("", "must not be empty")
        return size + TAG_BYTES

    return rule


def _printed(longest: int, *, least: int = 0) -> Rule:
    """Return the rule of texts that are shown as they are: nothing in them moves a cursor or turns a line."""
    text = _text(longest, least=least)

    def rule(value: str) -> int:
        weight = text(value)
        if not value.isprintable():
            raise WireViolation("", "must have no characters that control a terminal or the direction of writing")
        return weight

    return rule


def _segment(longest: int, *, least: int = 0) -> Rule:
    """Return the rule of names of objects: each becomes one segment of a URL's path (Kubernetes' own rule for all)."""
    text = _printed(longest, least=least)

    def rule(value: str) -> int:
        weight = text(value)
        if value in (".", "..") or "/" in value or "%" in value:
            raise WireViolation("", "must be a name that an object can have: not '.' or '..', without '/' and '%'")
        return weight

    return rule


def _uid_of_a_workload(value: str) -> int:
    weight = _text(limits.UID_MAX, least=1)(value)
    if not is_uid(value):
        raise WireViolation("", "must be a UID: letters and digits, with '-', '_' and '.' between them")
    return weight


def _number(least: int = 0, most: int = limits.NUMBER_MAX) -> Rule:
    def rule(value: int) -> int:
        if not least <= value <= most:
            raise WireViolation("", f"must be between {least} and {most}, is {value}")
        return SCALAR_BYTES

    return rule


def _real(least: float = 0.0, most: float = limits.SECONDS_MAX) -> Rule:
    def rule(value: float) -> int:
        if not (math.isfinite(value) and least <= value <= most):
            raise WireViolation("", f"must be between {least:g} and {most:g}, is {value:g}")
        return SCALAR_BYTES

    return rule


def _flag(_value: object) -> int:
    return SCALAR_BYTES


def _choice(value: enum.Enum) -> int:
    if not isinstance(value, enum.Enum):
        raise WireViolation("", "must be one of the enum's values")
    return SCALAR_BYTES


def _maybe(inner: Rule) -> Rule:
    def rule(value: Any) -> int:
        return 0 if value is None else inner(value)

    return rule


def _raw(longest: int) -> Rule:
    def rule(value: bytes) -> int:
        if len(value) > longest:
            raise TooLarge("", f"must have at most {longest} bytes, has {len(value)}")
        return len(value) + TAG_BYTES

    return rule


class _Object(msgspec.Struct):
    """Any JSON object: it is gone through, and nothing of it is made."""


def _json_object(longest: int) -> Rule:
    size_rule = _raw(longest)
    decode = msgspec.json.Decoder(_Object).decode

    def rule(value: bytes) -> int:
        weight = size_rule(value)
        if value:
            try:
                str(value, "utf-8")  # the decoder looks at no text that it skips
                decode(value)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise WireViolation("", f"must be empty or a JSON object ({error})") from None
            _look_through(value)
        return weight

    return rule


def _status(longest: int) -> Rule:
    """Return the rule of a status, which its reader takes apart in one go: in a long one values are counted first."""
    whole = _json_object(longest)

    def rule(value: bytes) -> int:
        if len(value) > limits.STATUS_LOOKED_AT_BYTES:
            few = value.count(b'"') <= 4 * limits.STATUS_VALUES_MAX  # two for a name, two for a text
            outside = _outside_of_texts(value) if few else b""
            if not few or outside.count(b",") > limits.STATUS_VALUES_MAX:
                raise TooLarge("", f"must have at most {limits.STATUS_VALUES_MAX} values")
            if _LONG_NUMBER in outside.translate(_DIGITS_ALIKE):
                raise TooLarge("", f"must have no number of more than {limits.STATUS_DIGITS_MAX} digits")
        return whole(value)

    return rule


_DIGITS_ALIKE = bytes.maketrans(b"0123456789", b"0" * 10)
_LONG_NUMBER = b"0" * (limits.STATUS_DIGITS_MAX + 1)
"""Looked for as text, in linear time: a pattern begins anew at each digit, which took 50 ms of one call."""


def _outside_of_texts(value: bytes) -> bytes:
    """Return what of JSON stands outside of its texts: quotes come in pairs once the escapes are out."""
    plain = value.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in value else value
    return b"".join(plain.split(b'"')[::2])


_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def _look_through(value: bytes) -> None:
    """Refuse valid JSON that has too many parts or is nested too deep; nearly all has too few brackets for either.

    Each step is one pass at the speed of C. Outside of texts every bracket is one.
    """
    if value.count(b"{") + value.count(b"[") <= limits.NESTING_MAX:
        return
    steps = _outside_of_texts(value).translate(_STEPS, _NO_BRACKETS)
    if len(steps) > 2 * limits.JSON_PARTS_MAX:
        raise TooLarge("", f"must have at most {limits.JSON_PARTS_MAX} objects and lists, has {len(steps) // 2}")
    if max(accumulate(memoryview(steps).cast("b")), default=0) > limits.NESTING_MAX:
        raise WireViolation("", f"must be nested at most {limits.NESTING_MAX} deep")


def _many(inner: Rule, most: int, *, least: int = 0) -> Rule:
    def rule(values: tuple[Any, ...]) -> int:
        if len(values) > most:
            raise TooLarge("", f"must have at most {most} items, has {len(values)}")
        if len(values) < least:
            raise WireViolation("", f"must have at least {least} items, has {len(values)}")
        if not values:
            return 0
        weight = done = 0
        try:
            for done, value in enumerate(values):  # noqa: B007  # read where the violation is caught
                weight += inner(value) + TAG_BYTES
        except WireViolation as violation:
            raise violation.within(f"[{done}]") from None
        return weight

    return rule


def _pair(second: Rule) -> Rule:
    first = _text(limits.WORD_MAX, least=1)

    def rule(value: tuple[str, Any]) -> int:
        return first(value[0]) + second(value[1]) + TAG_BYTES

    return rule


def measure(value: object) -> int:
    """Check `value` (a frame, control, message or part of one) and return an upper bound of its encoded size.

    Raises `WireViolation` or `TooLarge` naming the field by its path, such as `Commit.objects[3].name`.
    """
    try:
        return _measure(value)
    except WireViolation as violation:
        raise violation.within(type(value).__name__) from None


def _measure(value: Any) -> int:
    weight = TAG_BYTES
    name = ""
    try:
        for name, rule in RULES[type(value)].items():
            weight += rule(getattr(value, name))
    except WireViolation as violation:
        raise violation.within(name) from None
    return weight


def _any_message(value: messages.Message) -> int:
    weight = _measure(value)
    if isinstance(value, messages.TemplateBlob) and hashlib.sha256(value.content).hexdigest() != value.hash:
        raise WireViolation("hash", "must be the SHA-256 of content in hexadecimal")
    return weight


def _key(value: PlacementKey) -> int:
    uid = value.uid
    if is_uid(uid) and 0 < value.epoch <= limits.NUMBER_MAX:
        return len(uid) + _KEY_BYTES  # as `_measure` says; nearly every message has a key
    return _measure(value)


_KEY_BYTES = 2 * TAG_BYTES + SCALAR_BYTES


_VERSION_MAYBE = _printed(limits.NAME_MAX)
_NAME = _segment(limits.NAME_MAX, least=1)
_NAME_MAYBE = _segment(limits.NAME_MAX)
_NAMESPACE_MAYBE = _segment(limits.LABEL_MAX)
_UID = _printed(limits.UID_MAX, least=1)
_UID_MAYBE = _text(limits.UID_MAX)
_TEMPLATE_UIDS = dict.fromkeys(("template", "uid", "marks"), _UID_MAYBE)
_INSTANCE_MAYBE = _printed(limits.UID_MAX)
_KIND = _printed(limits.WORD_MAX, least=1)
_TICKET_MAYBE = _printed(limits.WORD_MAX)
_WORD = _text(limits.WORD_MAX, least=1)
_WORD_MAYBE = _text(limits.WORD_MAX)
_PLACE_MAYBE = _printed(limits.LABEL_MAX + len("/") + limits.NAME_MAX)
_LABEL_MAYBE = _printed(limits.LABEL_MAX)
_TEXT = _text(limits.TEXT_MAX)
_COUNT = _number(0, limits.COUNT_MAX)
_NUMBER = _number()
_AMOUNT = _number(-limits.NUMBER_MAX, limits.NUMBER_MAX)
_SECONDS = _real()
_AMOUNTS = _many(_pair(_AMOUNT), limits.PAIRS_MAX)
_POD_SETS = _many(_measure, limits.POD_SETS_MAX)
_OBJECT_REPORTS = _many(_measure, limits.OBJECTS_MAX)
_JSON = _json_object(limits.STATUS_BYTES_MAX)
_STATUS = _status(limits.STATUS_BYTES_MAX)
_SEAL = _raw(limits.SEAL_BYTES_MAX)
_PEM = _raw(limits.CERTIFICATE_BYTES_MAX)
_ENDING = {"key": _key, "reason": _WORD_MAYBE, "message": _TEXT}

RULES: dict[type, dict[str, Rule]] = {
    PlacementKey: {"uid": _uid_of_a_workload, "epoch": _number(1)},
    messages.Frame: {
        "session": _NUMBER,
        "term": _NUMBER,
        "sequence": _NUMBER,
        "acknowledged": _NUMBER,
        "control": _many(_measure, limits.FRAME_CONTROLS_MAX),
        "messages": _many(_any_message, limits.FRAME_MESSAGES_MAX),
    },
    messages.Hello: {
        "instance": _UID,
        "peer_instance": _INSTANCE_MAYBE,
        "version_min": _number(1, limits.COUNT_MAX),
        "version_max": _number(1, limits.COUNT_MAX),
        "agent_version": _VERSION_MAYBE,
        "last_session": _NUMBER,
        "last_term": _NUMBER,
        "received": _NUMBER,
        "kinds": _many(_KIND, limits.KINDS_MAX),
        "credits": _COUNT,
        "replicas": _COUNT,
        "api_reachable": _flag,
        "cluster_uid": _INSTANCE_MAYBE,
        "mark": _NUMBER,
        "counter": _NUMBER,
        "seal": _SEAL,
        "lease": _PLACE_MAYBE,
        "ticket": _TICKET_MAYBE,
    },
    messages.LeaseRenew: {"sent_at": _SECONDS, "api_reachable": _flag, "replicas": _COUNT, "mark": _NUMBER},
    messages.CreditGrant: {"credits": _COUNT},
    inventory.InventoryEntry: {
        "key": _key,
        "namespace": _NAMESPACE_MAYBE,
        "name": _NAME_MAYBE,
        "state": _WORD,
        "lifted": _flag,
        "counts": _AMOUNTS,
        "digest": _WORD_MAYBE,
        "given": _WORD_MAYBE,
    },
    inventory.InventoryChunk: {
        "request": _NUMBER,
        "applied": _NUMBER,
        "last": _flag,
        "entries": _many(_measure, limits.INVENTORY_CHUNK_ENTRIES),
        "foreign": _many(_measure, limits.FOREIGN_MAX),
        "unheard": _flag,
    },
    inventory.ForeignRun: {
        "origin": _LABEL_MAYBE,
        "kind": _LABEL_MAYBE,
        "namespace": _NAMESPACE_MAYBE,
        "name": _NAME_MAYBE,
        "count": _COUNT,
    },
    messages.Welcome: {
        "session": _number(1),
        "instance": _UID,
        "version": _number(1, limits.COUNT_MAX),
        "resume": _flag,
        "origin": _UID,
        "received": _NUMBER,
        "lease_seconds": _real(1.0, limits.LEASE_SECONDS_MAX),
        "renew_seconds": _real(1.0, limits.LEASE_SECONDS_MAX),
        "credit_window": _COUNT,
        "keeps_quota": _flag,
    },
    messages.LeaseGranted: {
        "sent_at": _SECONDS,
        "seconds": _real(0.0, limits.LEASE_SECONDS_MAX),
        "counter": _NUMBER,
        "seal": _SEAL,
    },
    inventory.InventoryRequest: {"request": _NUMBER, "namespaces": _many(_NAME, limits.NAMESPACES_MAX)},
    messages.Close: {"reason": _choice, "text": _TEXT, "retry_after_seconds": _SECONDS, "ticket": _WORD_MAYBE},
    messages.PodSetRequest: {
        "name": _NAME,
        "count": _COUNT,
        "requests": _AMOUNTS,
        "flavors": _many(_pair(_WORD), limits.PAIRS_MAX),
        "additions": _JSON,
        "needs": _WORD_MAYBE,
        "uncounted": _AMOUNTS,
    },
    messages.Offer: {
        "key": _key,
        "kind": _WORD,
        "namespace": _NAME,
        "name": _NAME,
        "queue": _NAME_MAYBE,
        "priority": _number(-limits.COUNT_MAX - 1, limits.COUNT_MAX),
        "pod_sets": _POD_SETS,
        "hold_seconds": _SECONDS,
    },
    messages.TemplateBlob: {"hash": _text(limits.UID_MAX, least=64), "content": _JSON},
    messages.ObjectTemplate: {"name": _NAME, "pod_set": _NAME_MAYBE, "metadata": _JSON, **_TEMPLATE_UIDS},
    messages.Commit: {
        "key": _key,
        "kind": _WORD,
        "namespace": _NAME,
        "name": _NAME,
        "queue": _NAME_MAYBE,
        "objects": _many(_measure, limits.OBJECTS_MAX),
        "pod_sets": _POD_SETS,
        "policy": _choice,
        "stop_after_seconds": _SECONDS,
        "release": _WORD_MAYBE,
    },
    messages.Confirm: {"keys": _many(_key, limits.KEYS_MAX)},
    messages.Withdraw: {"key": _key},
    messages.Stop: {"key": _key, "reason": _WORD_MAYBE, "message": _TEXT, "grace_seconds": _maybe(_SECONDS)},
    messages.Forget: {"key": _key, "gone": _flag},
    messages.DeleteObject: {"key": _key, "name": _NAME, "grace_seconds": _maybe(_SECONDS)},
    messages.SetUserGates: {"key": _key, "name": _NAME, "gates": _many(_WORD, limits.GATES_MAX)},
    messages.Cordon: {"cordoned": _flag},
    messages.CertificateRenewed: {"certificate": _PEM, "ca_bundle": _PEM},
    messages.Bid: {
        "key": _key,
        "kind": _choice,
        "refusal": _maybe(_choice),
        "text": _TEXT,
        "cost": _real(-1e18, 1e18),
        "hold_seconds": _SECONDS,
    },
    messages.Applied: {"key": _key, "waits": _flag},
    messages.GatesLifted: {"key": _key},
    messages.ObjectReport: {
        "key": _key,
        "kind": _WORD,
        "name": _NAME,
        **dict.fromkeys(("uid", "owner_uid"), _UID_MAYBE),
        "status": _STATUS,
        **dict.fromkeys(("deleting", "gone"), _flag),
    },
    messages.PodSetCounts: {
        "name": _NAME,
        "active": _COUNT,
        "ready": _COUNT,
        "succeeded": _COUNT,
        "failed": _COUNT,
        "terminating": _COUNT,
        "remaining": _COUNT,
    },
    messages.PodTrouble: {"reason": _WORD, "pod": _NAME, "text": _text(limits.TROUBLE_TEXT_MAX)},
    messages.CountsReport: {
        "key": _key,
        "pod_sets": _POD_SETS,
        "reclaimable": _AMOUNTS,
        "troubles": _many(_measure, limits.TROUBLES_MAX),
        "leaving": _maybe(_measure),
    },
    release.Leaving: {
        **dict.fromkeys(("since_seconds", "grace_seconds", "running_grace_seconds"), _SECONDS),
        "holds": _flag,
    },
    messages.FailedContainer: {
        "pod": _NAME,
        "node": _NAME_MAYBE,
        "container": _segment(limits.LABEL_MAX),
        "exit_code": _number(-limits.COUNT_MAX - 1, limits.COUNT_MAX),
        "reason": _WORD_MAYBE,
        "message": _text(limits.LAST_WORDS_MAX),
    },
    messages.Finished: {
        "succeeded": _flag,
        "objects": _OBJECT_REPORTS,
        "failed": _maybe(_measure),
        "kept_seconds": _SECONDS,
        **_ENDING,
    },
    messages.Stopped: {"objects": _OBJECT_REPORTS, **_ENDING},
    messages.Refused: {"key": _key, "refusal": _choice, "text": _TEXT},
    messages.Evicted: dict(_ENDING),
    messages.CapacityEntry: {
        "flavor": _WORD_MAYBE,
        "resource": _WORD,
        "nominal": _AMOUNT,
        "used": _AMOUNT,
        "largest_fit": _AMOUNT,
    },
    messages.Capacity: {
        "entries": _many(_measure, limits.CAPACITY_ENTRIES_MAX),
        "namespaces": _many(_NAME, limits.NAMESPACES_MAX),
        "foreign": _many(_measure, limits.FOREIGN_MAX),
        "unheard": _flag,
    },
    messages.CertificateRequest: {"request": _PEM},
}
"""Every field of every value that travels has its rule (a test compares this table with the classes)."""


def check_numbers(frame: messages.Frame) -> None:
    """Check session, term, sequence and acknowledgement. Raises `WireViolation`."""
    numbers = (frame.session, frame.term, frame.sequence, frame.acknowledged)
    if min(numbers) < 0 or max(numbers) > limits.NUMBER_MAX:
        measure(replace(frame, control=(), messages=()))


def check_message(message: messages.Message) -> int:
    """Check a message that is about to be queued and return its weight.

    Raises `WireViolation` or `TooLarge`: a limit of a field, or more than `MESSAGE_BYTES_MAX` in all.
    """
    name = type(message).__name__
    try:
        weight = _any_message(message)
    except WireViolation as violation:
        raise violation.within(name) from None
    if weight > limits.MESSAGE_BYTES_MAX:
        raise TooLarge(name, f"must have at most {limits.MESSAGE_BYTES_MAX} bytes, has {weight}")
    return weight
