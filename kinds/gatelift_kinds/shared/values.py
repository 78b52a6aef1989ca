"""The values in which a kind answers. Pure. Neighbour: `gatelift_kinds.kind`, what is asked of one."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.objects.core import Toleration
from gatelift_kube.objects.kueue import PriorityClassRef
from gatelift_kube.values.resources import Resource
from gatelift_wire.values.keys import LABEL_EPOCH, LABEL_ORIGIN, LABEL_WORKLOAD_UID, PlacementKey

ALL_GRANTED: Mapping[str, int] = MappingProxyType({})
"""As many pods as the object asks for."""

Charged = Mapping[str, str | int | None]
"""What the charge of a worker's object follows from, by field of `spec`: what it says, or the digest of that."""


class Maker(NamedTuple):
    """The object that made a pod."""

    name: str
    uid: str
    resource: Resource


class Seen(NamedTuple):
    """What of an object's status people see: `marks` are waited for, `details` are not."""

    marks: tuple[object, ...]
    details: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class PodSpecAt:
    """Where an object has the spec of the pods of one pod set.

    `template`: the fields from the object's `spec` to the pod template; none where the object is the pod.
    """

    pod_set: str
    template: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What the manager sees of a resource: selectors of labels and fields, as the API takes them.

    `labels`: of its watch, "" shows all. `unmarked`: of a second watch, which shows what may have lost the label of the
    first; "" for none. `lost`, `lost_fields`: of a list at the start of a term, of what neither shows; "" for none.
    """

    labels: str = ""
    unmarked: str = ""
    lost: str = ""
    lost_fields: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Verbs that are asked for: at home, in the management cluster, and at a worker, in an accepted namespace.

    `at_worker_status_why`: what the right to its status is for, where there is one. `asked`: by the webhook.
    """

    at_home: tuple[str, ...] = ("get", "list", "watch", "patch", "delete")
    at_home_status: tuple[str, ...] = ("patch",)
    at_worker: tuple[str, ...] = ("get", "list", "watch", "create", "patch", "delete")
    at_worker_status: tuple[str, ...] = ()
    at_worker_status_why: str = ""
    asked: tuple[str, ...] = ()


class KindError(Exception):
    """An object cannot be handled as asked; the text is one line for the user."""


class MergeConflictError(KindError):
    """What a flavor or a check wants to add contradicts what the user's object says. Permanent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityNames:
    """Where the priority of a user's object comes from. A workload class wins over the pod's.

    `workload_class` is the label's value, `pod_class` and `pod_priority` the pod spec's; "" and None when absent.
    """

    workload_class: str = ""
    pod_class: str = ""
    pod_priority: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Priority:
    """A resolved priority; `ref` None when no class was named."""

    value: int = 0
    ref: PriorityClassRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One object to make at a worker: `metadata` is JSON with the labels and annotations that travel, `spec` is JSON.

    The spec is as the management API server holds it but for what cannot be created elsewhere (generated selectors,
    gates of ours); the agent sanitises it.
    """

    name: str
    pod_set: str
    metadata: bytes
    spec: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetStart:
    """What is added to the pods of one pod set when they start: the flavor's placement, checks' updates.

    `count`: how many pods were granted; None where that is not known, which is as many as the object asks for.
    `needs`: digest of what each pod needs by what was admitted (`workload_document.needs_digest`), where the object is
    the user's own; "" where it was made of what was admitted.
    """

    pod_set: str
    count: int | None = None
    needs: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    """A placement as its objects carry it: who they belong to and what each pod set gets added."""

    key: PlacementKey
    origin: str
    namespace: str
    starts: tuple[PodSetStart, ...] = ()
    size: int | None = None
    """The number of its size, of elastic work: its objects are marked with that, and with the counts of `starts`."""

    @property
    def owner_labels(self) -> dict[str, str]:
        """Labels by which the agent knows its own: origin, workload UID, epoch."""
        return {
            LABEL_ORIGIN: self.origin,
            LABEL_WORKLOAD_UID: self.key.uid,
            LABEL_EPOCH: str(self.key.epoch),
        }

    def start(self, pod_set: str) -> PodSetStart:
        """Return what is added to this pod set, nothing if it is not named."""
        for start in self.starts:
            if start.pod_set == pod_set:
                return start
        return PodSetStart(pod_set=pod_set)


class UserChange(enum.Enum):
    """What a user did to an object that runs, and that ends the run."""

    SUSPENDED = "suspended"
    RESIZED = "resized"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEnd:
    """The work came to its own end. `reason` is that of the Workload's condition Finished."""

    succeeded: bool
    message: str = ""

    @property
    def reason(self) -> str:
        """`Succeeded` or `Failed`, as Kueue spells them."""
        return "Succeeded" if self.succeeded else "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchStep:
    """A patch of the object in question. Preconditions are inside `body`.

    `restores`: it gives a user back what was his. What it is for has stopped without it, and it may be left out.
    """

    body: bytes
    kind: PatchKind = PatchKind.MERGE
    subresource: str = ""
    restores: bool = False


@dataclass(frozen=True, slots=True)
class DeleteStep:
    """Delete the object in question (with its UID as precondition), with the grace that the stop names or its own."""


Step = PatchStep | DeleteStep
