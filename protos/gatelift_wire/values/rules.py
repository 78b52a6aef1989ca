"""What each field of each value may hold, in one table, and what a value weighs on the wire. Pure.

`measure` is used twice: by `session_core` before a message is queued (so that nothing leaves that the peer would
refuse), and by `codec` on all that came. Neighbours: `limits` (the numbers), `violations` (the errors), `field_rules`
(how a rule is made).
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from gatelift_wire.values import field_rules as of
from gatelift_wire.values import inventory, limits, messages, pod_sets, release, single, sizes, told
from gatelift_wire.values.field_rules import SCALAR_BYTES, TAG_BYTES, Rule
from gatelift_wire.values.keys import PlacementKey, is_uid
from gatelift_wire.values.violations import TooLarge, WireViolation


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


_VERSION_MAYBE = of.printed(limits.NAME_MAX)
_NAME = of.segment(limits.NAME_MAX, least=1)
_NAME_MAYBE = of.segment(limits.NAME_MAX)
_NAMESPACE_MAYBE = of.segment(limits.LABEL_MAX)
_UID = of.printed(limits.UID_MAX, least=1)
_UID_MAYBE = of.text(limits.UID_MAX)
_TEMPLATE_UIDS = dict.fromkeys(("template", "uid", "marks"), _UID_MAYBE)
_INSTANCE_MAYBE = of.printed(limits.UID_MAX)
_KIND = of.printed(limits.WORD_MAX, least=1)
_TICKET_MAYBE = of.printed(limits.WORD_MAX)
_WORD = of.text(limits.WORD_MAX, least=1)
_WORD_MAYBE = of.text(limits.WORD_MAX)
_PLACE_MAYBE = of.printed(limits.LABEL_MAX + len("/") + limits.NAME_MAX)
_LABEL_MAYBE = of.printed(limits.LABEL_MAX)
_TEXT = of.text(limits.TEXT_MAX)
_COUNT = of.number(0, limits.COUNT_MAX)
_NUMBER = of.number()
_AMOUNT = of.number(-limits.NUMBER_MAX, limits.NUMBER_MAX)
_SECONDS = of.real()
_AMOUNTS = of.many(of.pair(_AMOUNT), limits.PAIRS_MAX)
_POD_SETS = of.many(_measure, limits.POD_SETS_MAX)
_MEMBERS = of.many(_UID_MAYBE, limits.OBJECTS_MAX)
_SIZED = of.each_once(_POD_SETS)
_COUNTS = of.each_once(of.many(of.pair(_COUNT), limits.POD_SETS_MAX))
_SIZE_NUMBER = of.number(1)
_OBJECT_REPORTS = of.many(_measure, limits.OBJECTS_MAX)
_JSON = of.json_object(limits.STATUS_BYTES_MAX)
_STATUS = of.status(limits.STATUS_BYTES_MAX)
_SEAL = of.raw(limits.SEAL_BYTES_MAX)
_PEM = of.raw(limits.CERTIFICATE_BYTES_MAX)
_ENDING = {"key": _key, "reason": _WORD_MAYBE, "message": _TEXT}

RULES: dict[type, dict[str, Rule]] = {
    PlacementKey: {"uid": of.uid_of_a_workload, "epoch": of.number(1)},
    messages.Frame: {
        "session": _NUMBER,
        "term": _NUMBER,
        "sequence": _NUMBER,
        "acknowledged": _NUMBER,
        "control": of.many(_measure, limits.FRAME_CONTROLS_MAX),
        "messages": of.many(_any_message, limits.FRAME_MESSAGES_MAX),
    },
    messages.Hello: {
        "instance": _UID,
        "peer_instance": _INSTANCE_MAYBE,
        "version_min": of.number(1, limits.COUNT_MAX),
        "version_max": of.number(1, limits.COUNT_MAX),
        "agent_version": _VERSION_MAYBE,
        "last_session": _NUMBER,
        "last_term": _NUMBER,
        "received": _NUMBER,
        "kinds": of.many(_KIND, limits.KINDS_MAX),
        "credits": _COUNT,
        "replicas": _COUNT,
        "api_reachable": of.flag,
        "cluster_uid": _INSTANCE_MAYBE,
        "mark": _NUMBER,
        "counter": _NUMBER,
        "seal": _SEAL,
        "lease": _PLACE_MAYBE,
        "ticket": _TICKET_MAYBE,
        "adopts": of.flag,
    },
    messages.LeaseRenew: {"sent_at": _SECONDS, "api_reachable": of.flag, "replicas": _COUNT, "mark": _NUMBER},
    messages.CreditGrant: {"credits": _COUNT},
    inventory.InventoryEntry: {
        "key": _key,
        "namespace": _NAMESPACE_MAYBE,
        "name": _NAME_MAYBE,
        "state": _WORD,
        "lifted": of.flag,
        "counts": _AMOUNTS,
        "digest": _WORD_MAYBE,
        "given": _WORD_MAYBE,
        "all_over": of.flag,
        "size": _NUMBER,
        **dict.fromkeys(("granted", "running"), _COUNTS),
    },
    inventory.InventoryChunk: {
        "request": _NUMBER,
        "applied": _NUMBER,
        "last": of.flag,
        "entries": of.many(_measure, limits.INVENTORY_CHUNK_ENTRIES),
        "foreign": of.many(_measure, limits.FOREIGN_MAX),
        "unheard": of.flag,
    },
    inventory.ForeignRun: {
        "origin": _LABEL_MAYBE,
        "kind": _LABEL_MAYBE,
        "namespace": _NAMESPACE_MAYBE,
        "name": _NAME_MAYBE,
        "count": _COUNT,
    },
    messages.Welcome: {
        "session": of.number(1),
        "instance": _UID,
        "version": of.number(1, limits.COUNT_MAX),
        "resume": of.flag,
        "origin": _UID,
        "received": _NUMBER,
        "lease_seconds": of.real(1.0, limits.LEASE_SECONDS_MAX),
        "renew_seconds": of.real(1.0, limits.LEASE_SECONDS_MAX),
        "credit_window": _COUNT,
        "keeps_quota": of.flag,
    },
    messages.LeaseGranted: {
        "sent_at": _SECONDS,
        "seconds": of.real(0.0, limits.LEASE_SECONDS_MAX),
        "counter": _NUMBER,
        "seal": _SEAL,
    },
    inventory.InventoryRequest: {"request": _NUMBER, "namespaces": of.many(_NAME, limits.NAMESPACES_MAX)},
    messages.Close: {"reason": of.choice, "text": _TEXT, "retry_after_seconds": _SECONDS, "ticket": _WORD_MAYBE},
    pod_sets.PodSetRequest: {
        "name": _NAME,
        "count": _COUNT,
        "requests": _AMOUNTS,
        "flavors": of.many(of.pair(_WORD), limits.PAIRS_MAX),
        "additions": _JSON,
        "needs": _WORD_MAYBE,
        "uncounted": _AMOUNTS,
        "shape": _UID_MAYBE,
    },
    messages.Offer: {
        "key": _key,
        "kind": _WORD,
        "namespace": _NAME,
        "name": _NAME,
        "queue": _NAME_MAYBE,
        "priority": of.number(-limits.COUNT_MAX - 1, limits.COUNT_MAX),
        "pod_sets": _POD_SETS,
        "hold_seconds": _SECONDS,
        "size": _NUMBER,
    },
    messages.TemplateBlob: {"hash": of.text(limits.UID_MAX, least=64), "content": _JSON},
    messages.ObjectTemplate: {
        "name": _NAME,
        "pod_set": _NAME_MAYBE,
        "metadata": _JSON,
        "joined": of.flag,
        **_TEMPLATE_UIDS,
    },
    messages.Commit: {
        "key": _key,
        "kind": _WORD,
        "namespace": _NAME,
        "name": _NAME,
        "queue": _NAME_MAYBE,
        "objects": of.many(_measure, limits.OBJECTS_MAX),
        "pod_sets": _POD_SETS,
        "policy": of.choice,
        "stop_after_seconds": _SECONDS,
        "release": _WORD_MAYBE,
        "size": _NUMBER,
    },
    messages.Change: {
        "key": _key,
        "number": of.number(1),
        "join": of.many(_measure, limits.OBJECTS_MAX),
        "leave": of.many(_measure, limits.OBJECTS_MAX),
        "pod_sets": _POD_SETS,
    },
    single.Leaver: {"name": _NAME, "uid": of.text(limits.UID_MAX, least=1), "grace_seconds": of.maybe(_SECONDS)},
    sizes.Resize: {"key": _key, "number": _SIZE_NUMBER, "pod_sets": _SIZED},
    sizes.PlacementSize: {"key": _key, "number": _SIZE_NUMBER},
    messages.Confirm: {"keys": of.many(_key, limits.KEYS_MAX), "sizes": of.many(_measure, limits.KEYS_MAX)},
    messages.Withdraw: {"key": _key, "size": _NUMBER},
    messages.Stop: {"key": _key, "reason": _WORD_MAYBE, "message": _TEXT, "grace_seconds": of.maybe(_SECONDS)},
    messages.Forget: {"key": _key, "gone": of.flag},
    single.DeleteObject: {"key": _key, "name": _NAME, "grace_seconds": of.maybe(_SECONDS)},
    single.SetUserGates: {"key": _key, "name": _NAME, "gates": of.many(_WORD, limits.GATES_MAX)},
    messages.Cordon: {"cordoned": of.flag},
    messages.CertificateRenewed: {"certificate": _PEM, "ca_bundle": _PEM},
    messages.Bid: {
        "key": _key,
        "kind": of.choice,
        "refusal": of.maybe(of.choice),
        "text": _TEXT,
        "cost": of.real(-1e18, 1e18),
        "hold_seconds": _SECONDS,
        "size": _NUMBER,
    },
    messages.Applied: {"key": _key, "waits": of.flag},
    messages.GatesLifted: {"key": _key},
    messages.ObjectReport: {
        "key": _key,
        "kind": _WORD,
        "name": _NAME,
        **dict.fromkeys(("uid", "owner_uid"), _UID_MAYBE),
        "status": _STATUS,
        **dict.fromkeys(("deleting", "gone", "waits"), of.flag),
    },
    pod_sets.PodSetCounts: {
        "name": _NAME,
        "active": _COUNT,
        "ready": _COUNT,
        "succeeded": _COUNT,
        "failed": _COUNT,
        "terminating": _COUNT,
        "remaining": _COUNT,
        "rejected": _COUNT,
    },
    told.PodTrouble: {"reason": _WORD, "pod": _NAME, "text": of.text(limits.TROUBLE_TEXT_MAX)},
    messages.CountsReport: {
        "key": _key,
        "pod_sets": _POD_SETS,
        "reclaimable": _AMOUNTS,
        "troubles": of.many(_measure, limits.TROUBLES_MAX),
        "leaving": of.maybe(_measure),
        "made_here": _POD_SETS,
    },
    release.Leaving: {
        **dict.fromkeys(("since_seconds", "grace_seconds", "running_grace_seconds"), _SECONDS),
        "holds": of.flag,
    },
    told.FailedContainer: {
        "pod": _NAME,
        "node": _NAME_MAYBE,
        "container": of.segment(limits.LABEL_MAX),
        "exit_code": of.number(-limits.COUNT_MAX - 1, limits.COUNT_MAX),
        "reason": _WORD_MAYBE,
        "message": of.text(limits.LAST_WORDS_MAX),
    },
    messages.Finished: {
        "succeeded": of.flag,
        "objects": _OBJECT_REPORTS,
        "failed": of.maybe(_measure),
        "kept_seconds": _SECONDS,
        **_ENDING,
    },
    messages.Stopped: {"objects": _OBJECT_REPORTS, "members": _MEMBERS, **_ENDING},
    messages.Refused: {"key": _key, "refusal": of.choice, "text": _TEXT, "members": _MEMBERS},
    messages.Evicted: {"members": _MEMBERS, **_ENDING},
    messages.CapacityEntry: {
        "flavor": _WORD_MAYBE,
        "resource": _WORD,
        "nominal": _AMOUNT,
        "used": _AMOUNT,
        "largest_fit": _AMOUNT,
    },
    messages.Capacity: {
        "entries": of.many(_measure, limits.CAPACITY_ENTRIES_MAX),
        "namespaces": of.many(_NAME, limits.NAMESPACES_MAX),
        "foreign": of.many(_measure, limits.FOREIGN_MAX),
        "unheard": of.flag,
    },
    messages.CertificateRequest: {"request": _PEM},
    sizes.SliceFinished: {"key": _key, "number": _SIZE_NUMBER, "ended": _SIZED},
    sizes.Drained: {"key": _key, "number": _SIZE_NUMBER, "remaining": _COUNTS},
    sizes.SizeRefused: {"key": _key, "number": _SIZE_NUMBER, "refusal": of.choice, "text": _TEXT},
    sizes.SizeWanted: {"key": _key, "counts": _COUNTS},
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
