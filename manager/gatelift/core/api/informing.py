"""What a worker says, made to fit the record: no value of it makes a status that the API server refuses. Pure.

All that is written of a cluster is one document, so a single value that the CRD refuses would take the session's number
and *lost* with it. What only people read is left out where it does not fit; what holds work (`recordable`) is
shortened. Bounds are the CRD's own (`gatelift_bounds`). Neighbours: `cluster_facts` (keep it), `cluster_record`
(leaves out all that only people read where the API server refuses it nonetheless), `predecessors`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import msgspec

from gatelift.core.api.user_objects import UserObject
from gatelift_admission.values import amounts
from gatelift_kube.deciding.writes import WriteError, WriteFailed
from gatelift_kube.objects import conditions
from gatelift_kube.objects import gatelift_bounds as bounds
from gatelift_kube.objects.gatelift import FlavorCapacity, Predecessor, WorkerCluster, WorkerClusterStatus
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values.numbers import signed
from gatelift_kube.values.plain_text import plain
from gatelift_wire.values.messages import Capacity, Hello

CONDITION = "InformationLeftOut"

CAPACITY_BYTES_MAX = 128 * 1024
"""Of a worker's capacity in its status, about a thousand flavors and resources. The API server keeps beside it who
wrote each entry, which is as long again, and takes 1.5 MiB in all."""

AGAIN_SECONDS = 300.0
"""How long nothing that only informs is written after the API server has refused it: each try costs a round trip."""

SHOWN_CHARS_MAX = 300
"""Of a value or of an API server's answer, inside the condition's message."""


@dataclass(frozen=True, slots=True)
class ShownCapacity:
    """A worker's capacity as its status can say it; `left_out` tells what it cannot, "" for nothing."""

    capacity: tuple[FlavorCapacity, ...] = ()
    left_out: str = ""


@dataclass(frozen=True, eq=False)
class StatedCapacity:
    """A worker's capacity as it said it: a worker may say it far more often than it is written."""

    said: Capacity

    @cached_property
    def shown(self) -> ShownCapacity:
        """As its status can say it; looked through when it is written, once (IS-10)."""
        return shown(self.said)


def shown(said: Capacity) -> ShownCapacity:
    """Return what can be written of what a worker says."""
    kept: dict[tuple[str, str], FlavorCapacity] = {}
    first, left_out, size = "", 0, 0
    for number, entry in enumerate(said.entries):
        one = FlavorCapacity(
            flavor=entry.flavor,
            resource=entry.resource,
            nominal=entry.nominal,
            used=entry.used,
            largest_fit=entry.largest_fit,
        )
        weight = len(msgspec.json.encode(one))
        why = "is there twice" if (one.flavor, one.resource) in kept else _misfit(one)
        if not why and size + weight > CAPACITY_BYTES_MAX:
            why = f"is more than {CAPACITY_BYTES_MAX} bytes in all"
        if why:
            first, left_out = first or f"capacity[{number}] {why}", left_out + 1
        else:
            kept[one.flavor, one.resource], size = _in_quantities(one), size + weight
    text = f"{left_out} of {len(said.entries)} entries of its capacity are left out: {first}" if left_out else ""
    return ShownCapacity(tuple(kept.values()), text)


def _in_quantities(one: FlavorCapacity) -> FlavorCapacity:
    """Return a capacity as people read and write it: cpu in cores, memory in bytes, both with their suffixes."""
    name = one.resource
    said = (signed(str(each)) or 0 for each in (one.nominal, one.used, one.largest_fit))
    nominal, used, largest = (amounts.to_quantity(each, name) for each in said)
    return msgspec.structs.replace(one, nominal=nominal, used=used, largest_fit=largest)


def _misfit(one: FlavorCapacity) -> str:
    for name, shown_name, bound in _BOUNDS:
        value = getattr(one, name)
        why = bounds.misfit(value, bound)
        if why:
            return f"{shown_name} {why}, is {plain(repr(value), SHOWN_CHARS_MAX)}"
    return ""


_BOUNDS = tuple(
    (field.name, field.encode_name, bounds.BOUNDS[FlavorCapacity][field.encode_name])
    for field in msgspec.structs.fields(FlavorCapacity)
)
"""Asked for once: msgspec evaluates a class's annotations anew each time, which for each entry took 50 ms (HD-695)."""


NAME_SHOWN_CHARS_MAX = 63
"""Of what no object can be called: nothing is found by it, and five hundred of them have to find room."""


def recordable(place: UserObject) -> UserObject:
    """Return a place as the record can name it. What no object can be called is made plain and cut: nothing goes there.

    So it holds nobody's place but its own, and people see what could be recorded.
    """
    return UserObject(
        _name(place.kind, bounds.LABEL_VALUE, "kind"),
        _name(place.namespace, bounds.LABEL, "namespace"),
        _name(place.name, bounds.SUBDOMAIN, "name"),
    )


def _name(text: str, pattern: str, field: str) -> str:
    limits = {**bounds.BOUNDS[Predecessor][field], "pattern": pattern}
    return plain(text, NAME_SHOWN_CHARS_MAX) if bounds.misfit(text, limits) else text


def who(hello: Hello) -> dict[str, object]:
    """Return what is shown of who greets."""
    version = plain(hello.agent_version, bounds.longest(WorkerClusterStatus, "agentVersion"))
    return {"agent_version": version, "replicas": hello.replicas}


def refused(event: WriteFailed) -> str:
    """Return what people are told when the API server refuses a document for what it says, "" for any other failure."""
    if event.error not in {WriteError.INVALID, WriteError.TOO_LARGE}:
        return ""
    return f"The API server refused what only people read of it: {plain(event.message, SHOWN_CHARS_MAX)}"


def condition(found: WorkerCluster, left_out: str) -> Condition | None:
    """Return what the WorkerCluster says of what is left out; None: there never was anything."""
    if left_out:
        status, reason, message = "True", "NotRecordable", left_out
    elif conditions.find(found.status.conditions, CONDITION) is not None:
        status, reason, message = "False", "None", "All that its agent says of itself is shown"
    else:
        return None
    return Condition(
        type=CONDITION, status=status, reason=reason, message=message, observed_generation=found.metadata.generation
    )
