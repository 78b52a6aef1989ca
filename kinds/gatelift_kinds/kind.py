"""What is asked of a kind. Pure.

A kind says how its user objects become a Workload, what travels to a worker, how it is held back and let go there, what
comes back, and what the webhook sets and refuses. `registry` lists the kinds. Objects come typed and, where more is
needed, with their JSON as served (`raw`). Everything returned is a value (`shared.values`) or the body of a write; who
writes, and when, is the cores' business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from gatelift_kinds.shared.gathered import Gathered
from gatelift_kinds.shared.hooks import Hook
from gatelift_kinds.shared.resizes import Resizes
from gatelift_kinds.shared.reviewed import Reviewed
from gatelift_kinds.shared.values import (
    ALL_GRANTED,
    Charged,
    KindError,
    ObjectEnd,
    Part,
    PatchStep,
    Placing,
    PodSpecAt,
    Priority,
    PriorityNames,
    Rights,
    Seen,
    Sight,
    Step,
    UserChange,
)
from gatelift_kube.objects.core import Pod, PodSpec, raw_status
from gatelift_kube.objects.kueue import PodSet, Workload
from gatelift_kube.objects.meta import Condition, ObjectMeta, OwnerReference
from gatelift_kube.values.resources import Resource
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import PodSetCounts

UserT_contra = TypeVar("UserT_contra", contravariant=True)


def _at(obj: Any, at: PodSpecAt) -> PodSpec:
    found: Any = obj.spec
    for name in at.template:
        found = getattr(found, _attribute(name))
    spec: PodSpec = found.spec if at.template else found
    return spec


@lru_cache(maxsize=256)
def _attribute(field: str) -> str:
    """Return the attribute of a typed object that holds a field of its JSON."""
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in field)


def _uid(obj: Any) -> str:
    meta: ObjectMeta = obj.metadata
    return meta.uid


def group_of(owner: OwnerReference) -> str:
    """Return the API group that an owner reference names."""
    return owner.api_version.rpartition("/")[0]


class Asks(Protocol[UserT_contra]):
    """What its user's object asks for, and what becomes of that object while it waits, runs and ends."""

    def managed(self, obj: UserT_contra) -> bool:
        """Return whether the object is ours: taken over by the webhook, and not another kind's business."""
        ...

    def queue_name(self, obj: UserT_contra) -> str:
        """Return the LocalQueue's name, "" if none."""
        ...

    def priority_names(self, obj: UserT_contra) -> PriorityNames:
        """Return where its priority comes from."""
        ...

    def work_of(self, obj: UserT_contra) -> str:
        """Return whose work the object is: objects of which it is the same are admitted and placed as one.

        By what nobody may change of an object that is queued or placed. Its own UID, or what is no object's UID.
        """
        return _uid(obj)

    def gathering(self, obj: UserT_contra, copied: Sequence[str] = (), name: str = "") -> Gathered | None:
        """Return what is to be kept of all objects of its work, as of none yet; None where a work has one object.

        `copied`: keys of labels that go on to its Workload; `name`: of that, where the object does not say any more
        whose it is. Of a kind that gathers, nobody takes one object for all, however many there are.
        """
        return None

    def workload_name(self, obj: UserT_contra) -> str:
        """Return the name of its Workload, by Kueue's rule: the same for all objects of a work."""
        ...

    def replaces(self, workload: Workload, current: Workload) -> bool:
        """Return whether a second Workload of a work is to take the place of its current one, and is no second run.

        Any other one is deleted.
        """
        return False

    def workload_document(self, obj: UserT_contra, raw: bytes, priority: Priority) -> bytes:
        """Return the complete Workload to create, in epoch 1, as JSON."""
        ...

    def equivalent(self, workload: Workload, obj: UserT_contra) -> bool:
        """Return whether the Workload describes the object: same pod sets, counts and requests."""
        ...

    def suspended(self, obj: UserT_contra) -> bool:
        """Return whether nothing of the user's own object can run: gated, suspended or over."""
        ...

    def home_only(self, obj: UserT_contra) -> str:
        """Return why the object must not be placed elsewhere, "" when it may: its own cluster would run it as well.

        With the way out.
        """
        return ""

    def away_only(self, obj: UserT_contra) -> str:
        """Return why the object must not be placed at home, with the way out; "" when it may: nobody would run it."""
        return ""

    def nowhere(self, obj: UserT_contra) -> str:
        """Return why the object must be let go nowhere, since more would run than is charged; "" when it may.

        With the way out.
        """
        return ""

    def outcome(self, obj: UserT_contra) -> ObjectEnd | None:
        """Return how the object ended by its own status, None while it has not."""
        ...

    def pods_ready(self, obj: UserT_contra) -> bool:
        """Return whether all its pods are ready or have succeeded, by its own status."""
        ...

    def marked_step(self, obj: UserT_contra) -> PatchStep | None:
        """Return the write that puts back the label by which a managed object is watched; None while it is there."""
        return None

    def was_alone(self, obj: UserT_contra) -> bool:
        """Return whether the object would be ours but for a larger work that it names; its Workload tells if it was."""
        return False

    def out_of_sight(self, obj: UserT_contra) -> bool:
        """Return whether no watch of the manager shows the object: both labels by which it is watched are off."""
        return False

    def placed_step(
        self, obj: UserT_contra, key: PlacementKey, granted: Mapping[str, int] = ALL_GRANTED
    ) -> PatchStep | None:
        """Return the write to the user's object once its workload is placed on a worker as `key`; None if none is due.

        `granted`: pods per pod set, where the object shows with how many it runs. Due once for each placement: what its
        user takes back after that is `user_change`.
        """
        return None

    def user_change(
        self, obj: UserT_contra, workload: Workload, key: PlacementKey, granted: Mapping[str, int]
    ) -> UserChange | None:
        """Return what its user did to an object with the live placement `key` that ends it; None for nothing.

        `granted`: pods per pod set. An object that was not let go yet may have changed, too.
        """
        return None

    def unplaced_steps(self, obj: UserT_contra, raw: bytes, wall: str) -> tuple[PatchStep, ...]:
        """Return the writes that hold an object back which has no admission, in order; `wall` is RFC 3339.

        They take the mirrored run back after an eviction, and stop what somebody else let go. Each is for the version
        that was seen. Level-triggered: empty when nothing is left to do.
        """
        return ()

    def lets_itself_go(self, obj: UserT_contra) -> bool:
        """Return whether somebody else than we has let it go: it shows no placement and is not held back."""
        return False

    def told_step(self, obj: UserT_contra, raw: bytes, reason: str, wall: str) -> PatchStep | None:
        """Return the write that says on the user's object why it is deleted, before that; None: none is, or it is said.

        `reason`: of the stop; `wall`: RFC 3339. It informs: no deletion waits for it.
        """
        return None

    def bears_marks(self, obj: UserT_contra) -> bool:
        """Return whether something that we wrote is on it, or holds it: then it is held back also in no queue."""
        return self.release_step(obj) is not None

    def release_step(self, obj: UserT_contra) -> PatchStep | None:
        """Return the write that drops our finalizer from the user's object; None when it is not there."""
        return None


class Shown(Protocol[UserT_contra]):
    """What its user's object shows of a run elsewhere."""

    def shown(self, obj: UserT_contra, reported: bytes) -> bytes:
        """Return what the user's object may show of a reported status (JSON): fields on a list, of bounded size."""
        return b""

    def mirror_patch(self, obj: UserT_contra, raw: bytes, reported: bytes) -> bytes | None:
        """Return the merge patch of the user's `/status` that shows the reported status (JSON) of the worker's object.

        None when nothing visible would change, or when the object cannot take it yet (a Job that is still suspended
        takes it once it has been unsuspended: ask again when it changes).
        """
        return None

    def says_ready(self, obj: UserT_contra, reported: bytes) -> bool:
        """Return whether a reported status (JSON) says of it what `pods_ready` asks; nothing does that is none."""
        return False

    def unreachable_patch(self, obj: UserT_contra, raw: bytes, message: str, wall: str) -> bytes | None:
        """Return the patch of the user's `/status` that says that nobody hears of its cluster; None: nothing to say.

        What the status said last stays. The next reported status that is shown takes it back.
        """
        return None

    def trouble_patch(self, obj: UserT_contra, raw: bytes, said: Condition | None) -> bytes | None:
        """Return the patch of the user's `/status` that says what keeps its pod from running; None: nothing to say.

        `said`: the Workload's condition `pod_trouble.CONDITION`, None where that has none.
        """
        return None

    def end_patch(self, obj: UserT_contra, raw: bytes, outcome: ObjectEnd, wall: str) -> bytes | None:
        """Return the smallest patch of the user's `/status` that shows this end; `wall` is RFC 3339.

        For an end whose reported status is not there, or is refused by the management API server. None when the end is
        shown, or when the object cannot take it yet (as in `mirror_patch`).
        """
        return None


class Travels(Protocol[UserT_contra]):
    """What travels, and how an agent makes it, lets it go, stops it and tells of it."""

    def parts(self, obj: UserT_contra, raw: bytes, granted: Mapping[str, int] = ALL_GRANTED) -> tuple[Part, ...]:
        """Return the objects to make at a worker, for `granted` pods per pod set where that is fewer (KEP-420)."""
        ...

    def document(self, part: Part, placing: Placing) -> bytes:
        """Return the object to create: held back, with our labels and the report finalizer.

        MergeConflictError: what is to be added contradicts the part.
        """
        ...

    def unlike(self, obj: UserT_contra, raw: bytes, declared: bytes, default_class: str) -> str:
        """Return in what an object that was made at a worker differs from the spec (JSON) declared for it; "": it fits.

        `default_class`: the priority class that an API server gave to the one that declares.
        """
        return "no driver makes an object of this kind at a worker"

    def taken_in_patch(self, obj: UserT_contra, raw: bytes, part: Part, placing: Placing) -> bytes:
        """Return the JSON patch that makes such an object one of a placement; it stays held back.

        MergeConflictError: what is to be added contradicts it.
        """
        raise KindError("nothing of this kind is made at a worker by a driver")

    def spec_problem(self, spec: Mapping[str, Any]) -> str:
        """Return why an object of this spec is made at no worker, with the field and the way out; "" if it is."""
        return ""

    def lifted(self, obj: UserT_contra) -> bool:
        """Return whether it is let go."""
        ...

    def liftable(self, obj: UserT_contra, key: PlacementKey) -> bool:
        """Return whether only we hold it back: no gate of the user's, no deletion, no stop of this placement."""
        ...

    def lift_patch(self, obj: UserT_contra) -> bytes:
        """Return the JSON patch that lets it go, with tests on UID and resourceVersion (rule R7, R8)."""
        ...

    def stop_step(self, obj: UserT_contra, key: PlacementKey) -> Step | None:
        """Return the next write that stops a worker's object; None when none is left (then wait for its pods).

        The first one always changes the object, so that a lift that is still under way fails (rule R7).
        """
        ...

    def stopped(self, obj: UserT_contra, pods: Sequence[Pod], key: PlacementKey) -> bool:
        """Return whether nothing of it runs or can start; `pods` are those of the placement."""
        ...

    def leaving(self, obj: UserT_contra, pods: Sequence[Pod], key: PlacementKey) -> bool:
        """Return whether all of it is on its way out, by deletions that were accepted, and no pod of it comes anew.

        That may free quota before it has stopped (KEP-6143), so a kind that does not know says no.
        """
        return False

    def counts(self, obj: UserT_contra, pods: Sequence[Pod]) -> tuple[PodSetCounts, ...]:
        """Return where its pods are, per pod set; nothing where the object is the pod and says so itself."""
        return ()

    reclaims: bool = False
    """Whether pods of it that are done give their quota back while others run (KEP-78): `reclaimable` says how many."""

    def reclaimable(self, obj: UserT_contra) -> tuple[tuple[str, int], ...]:
        """Return the pods per pod set, of as many as it runs with, that need quota no longer (KEP-78), without zeros.

        By the object's own status: at a worker that of this placement, at `local` that of an object which goes on.
        """
        return ()

    def pods_ended(self, obj: UserT_contra) -> int:
        """Return how many pods its controller has counted as ended, for ever; 0 where it makes none."""
        return 0

    def at_rest(self, obj: UserT_contra, raw: bytes) -> bool:
        """Return whether its own status shows nothing of it that runs or stops."""
        ...

    def seen(self, obj: UserT_contra, raw: bytes) -> Seen:
        """Return what people see of its status; `raw`: its JSON. Raises an exception where that cannot be read."""
        return Seen((), (raw_status(raw),))

    def moments(self, obj: UserT_contra) -> tuple[str, ...]:
        """Return the times of changes that its status names: the last of what is over tells when it ended."""
        return ()

    def noted(self, obj: UserT_contra) -> tuple[str, ...]:
        """Return the UIDs of the pods that its controller has noted as ended, and counts next."""
        return ()

    def uncounted(self, obj: UserT_contra, found: Sequence[Pod]) -> int:
        """Return how many pods of what is let go are gone at least, and were not counted; `found`: all there are."""
        return 0

    def missing(self, obj: UserT_contra, seen: PodSetCounts) -> tuple[int, int]:
        """Return how many pods of a pod set are not there that its controller is to make, and how many are to be there.

        `seen`: those that are known.
        """
        return 0, 0

    def user_gates_patch(self, obj: UserT_contra, remaining: Sequence[str]) -> bytes | None:
        """Return the JSON patch that removes the user's gates that are not in `remaining`; None when none is to go."""
        return None


class HeldAtHome(Protocol[UserT_contra]):
    """How an agent holds and lets go the user's own object: placements on the management cluster itself."""

    def let_go_here(self, obj: UserT_contra) -> bool:
        """Return whether the user's own object is let go at `local` with what the lift adds: its pods are known."""
        ...

    def local_hold_step(self, obj: UserT_contra) -> PatchStep | None:
        """Return the patch that holds back the user's own object that somebody else let go; None: nobody has."""
        return None

    def local_lift_patch(self, obj: UserT_contra, raw: bytes, placing: Placing) -> bytes:
        """Return the JSON patch that merges what is to be added into the user's own object and lets it go, in one.

        MergeConflictError: what is to be added contradicts the object.
        """
        ...

    def local_stop_step(self, obj: UserT_contra, raw: bytes, key: PlacementKey) -> Step | None:
        """Return the next write that stops the user's own object and takes the additions back; None when done.

        An object that was never let go is marked by a patch, which defeats a late lift, and is left to the user.
        """
        ...

    def local_told_step(self, obj: UserT_contra, raw: bytes, reason: str, message: str) -> PatchStep | None:
        """Return the write that says on the user's own object why it is stopped, before its deletion; None: none is.

        `reason`: of the stop. It informs: no deletion waits for it.
        """
        return None

    def local_note(self, obj: UserT_contra) -> str:
        """Return what the user's own object says of how it was before it was let go at `local`, "" for nothing."""
        return ""

    def local_note_patch(self, obj: UserT_contra, raw: bytes, said: str) -> bytes | None:
        """Return the merge patch, for this version, that writes it again; `said` "": what the object itself tells.

        None for a kind that needs none: it is not put back when it stops.
        """
        return None


class KeptAsCharged(Protocol[UserT_contra]):
    """What of a worker's object its charge follows from, and how an edit behind our back is taken back."""

    def charged(self, obj: UserT_contra, raw: bytes) -> Charged:
        """Return what of a worker's object its charge follows from: nobody but the agent may change it there."""
        ...

    def uncharged(self, raw: bytes) -> Mapping[str, str]:
        """Return digests, by field of `spec`, of what may be changed of a worker's object without a charge, and runs.

        "Nothing" has a digest as well: a field that is missing here is one that nobody knows of.
        """
        return {}

    def pods_of_it(self, obj: UserT_contra, raw: bytes) -> Mapping[str, bytes]:
        """Return a pod of each pod set as its controller makes them of a worker's object, as JSON, by pod set.

        None where the object is the pod.
        """
        return {}

    def put_back(self, obj: UserT_contra, raw: bytes, wanted: Charged) -> bytes | None:
        """Return the JSON patch that makes it as it was charged; None where that cannot be done any more."""
        return None

    def may_put_back(self, obj: UserT_contra, wanted: Charged, pods: Sequence[Pod]) -> bool:
        """Return whether it runs no more than it is charged for when it is put back now: what an edit ended may stop.

        `pods`: those that it made.
        """
        return True

    def put_back_starts(self, obj: UserT_contra, wanted: Charged) -> bool:
        """Return whether pods may start when it is put back: then that needs what a lift needs (R1)."""
        return False


class Kind(
    Asks[UserT_contra],
    Shown[UserT_contra],
    Travels[UserT_contra],
    HeldAtHome[UserT_contra],
    KeptAsCharged[UserT_contra],
    Resizes[UserT_contra],
    Reviewed,
    Protocol[UserT_contra],
):
    """All that is known of one kind. Two kinds may be of one resource: `selects` tells whose an object is."""

    name: str
    """What it is called on the wire and in `gatelift get`: `Pod`, `Job`, `Workload`."""
    resource: Resource
    struct: type[Any]  # as which its objects are read
    pods_are_children: bool = False  # True: a controller makes its pods, found by label. False: the object is the pod
    gathers: bool = False  # True: a work has several objects (`gathering`), of which none ends it by itself
    ends_with_workload: bool = False  # True: who deletes its Workload ends it (Kueue: a pod), else it gets another one
    travels: bool = True  # False: nothing of it is made at a worker (a Workload without owner)
    pod_specs: tuple[PodSpecAt, ...] = ()
    """Where an object has the specs of its pods, one for each pod set."""
    sight: Sight = Sight()
    """What the manager sees of them. Kinds of one resource have the same."""

    rights: Rights = Rights()
    """What Gatelift may do with them. Kinds of one resource have the same."""
    hook: Hook | None = None
    """How the webhook is shown its objects, None where it is not. Kinds of one resource have the same."""

    def selects(self, obj: UserT_contra) -> bool:
        """Return whether an object of the resource is this kind's; the first kind of a registry that says so has it.

        By what nobody may change of an object that is queued or placed: the webhook is to refuse that.
        """
        return True

    def specs(self, obj: UserT_contra) -> tuple[PodSpec, ...]:
        """Return the specs of its pods, as `pod_specs` says where they are."""
        return tuple(_at(obj, at) for at in self.pod_specs)

    def pod_sets(self, obj: UserT_contra) -> tuple[PodSet, ...]:
        """Return the pod sets that the object asks for, as its Workload is to have them."""
        ...

    def made(self, meta: ObjectMeta) -> tuple[str, str] | None:
        """Return name and UID of the object of this resource that a pod names as its maker; None where it names none.

        The controller is believed.
        """
        return next(
            (
                (one.name, one.uid)
                for one in meta.owner_references
                if one.controller and one.kind == self.resource.kind and self.resource.group == group_of(one)
            ),
            None,
        )
