"""What a pod may ask for at a worker: no more than was granted for it, whatever this cluster adds to what was sent.

A LimitRange, the overhead of a RuntimeClass or a webhook here raise what a pod asks for after home has charged it. A
pod shows it itself, held back, in the answer to its create. A Job's template shows nothing: before the Job is let go
the API server is asked by a dry run what a pod of it would be, and later each pod that was made is looked at (decision
39).
Counted by the function that charges. `local` objects are the user's own, and the manager's to judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gatelift_admission.demand.requests import pod_requests
from gatelift_admission.values import amounts
from gatelift_agent.core.placement.placements import EndingKind, Placement, PlacementEnding, Tracked
from gatelift_agent.core.refusing import podspecs
from gatelift_agent.core.refusing.podspecs import SpecError
from gatelift_agent.core.state import asking
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import SamplePod
from gatelift_agent.core.watched import ownership
from gatelift_kinds.kind import Kind
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.core import Pod, PodSpec
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.unreadable import UNREADABLE
from gatelift_wire.values.refusals import Refusal

ANNOTATION_GRANTED = "gatelift.dev/granted"
"""JSON of what one pod may ask for, written with the create: a restart knows neither template nor grant."""

GRANTED_BYTES_MAX = 8192
"""Of an annotation that is believed; a pod that names a dozen resources has five hundred."""

SAMPLE_SECONDS = 30.0
"""How long an answer of what a pod would be stands: a LimitRange that comes later is met by looking at the pods."""

RAISED = "WorkerPodAsksForMore"
_NAMED_MAX = 3
_WAY_OUT = (
    "set the requests in the manifest, or make the namespace's LimitRange, the RuntimeClass's overhead or the webhook "
    "here the same as in the management cluster"
)
_GRANTED = msgspec.json.Decoder(dict[str, int])


def granted(placement: Placement, pod_set: str, kind: Kind[Any], spec: bytes) -> dict[str, int]:
    """Return what one pod of this spec may ask for: what was granted for it, or what it says itself where that is more.

    Home may count a resource under another name, or not at all, and then grants nothing under its own; what was sent
    is what it counted. Of a kind with several pod sets by pod set and resource. SpecError where the spec cannot be
    counted.
    """
    allowed: dict[str, int] = {}
    for one in podspecs.pod_specs(kind, podspecs.parse(spec)):
        try:
            sent = pod_requests(msgspec.convert(one.spec, PodSpec))
        except (msgspec.ValidationError, amounts.QuantityError) as error:
            raise SpecError(f"{one.path}: {error}; send it as the API server holds it") from error
        prefix = _prefix(kind, one.pod_set)
        for name, amount in {**sent, **_per_pod(placement, one.pod_set if prefix else pod_set)}.items():
            allowed[f"{prefix}{name}"] = max(amount, sent.get(name, 0))
    return allowed


def _prefix(kind: Kind[Any], pod_set: str) -> str:
    """Return what stands before a resource's name; nothing where one pod spec is all there is."""
    return f"{pod_set}/" if len(kind.pod_specs) > 1 else ""


def _of_pod_set(kind: Kind[Any], allowed: Mapping[str, int], pod_set: str) -> Mapping[str, int]:
    """Return what a pod of one pod set may ask for: nothing, where that is none of the kind's."""
    prefix = _prefix(kind, pod_set)
    return {name.removeprefix(prefix): amount for name, amount in allowed.items() if name.startswith(prefix)}


def note(allowed: Mapping[str, int]) -> str:
    """Return what one pod may ask for as the annotation has it."""
    return msgspec.json.encode(dict(allowed), order="sorted").decode()


def asks(world: World, placement: Placement, tracked: Tracked, now: float) -> Mapping[str, Mapping[str, int]] | None:
    """Return what a pod of each pod set of this object asks for here; None while the API server is asked for it."""
    obj = tracked.object
    if isinstance(obj, Pod):
        return {tracked.pod_set: pod_requests(obj.spec)}
    if now >= tracked.sampled_at + SAMPLE_SECONDS:
        tracked.sampled = {}
    for pod_set, body in world.kind(placement).pods_of_it(obj, tracked.raw).items():
        if pod_set not in tracked.sampled:
            asking.sample(world, placement, tracked, SamplePod(pod_set, body), now)
            return None
    return tracked.sampled


def sampled(tracked: Tracked, pod_set: str, found: KubeObject | None, now: float) -> None:
    """Take the answer of what a pod of a pod set would be; the oldest of an object's tells how long they stand."""
    if isinstance(found, Pod):
        tracked.sampled_at = tracked.sampled_at if tracked.sampled else now
        tracked.sampled = {**tracked.sampled, pod_set: pod_requests(found.spec)}


def refusal(kind: Kind[Any], tracked: Tracked, asked: Mapping[str, Mapping[str, int]]) -> tuple[Refusal, str] | None:
    """Return why what asks for so much per pod, of each pod set, is not let go; None when it may be."""
    allowed = _allowed(tracked)
    if allowed is None:
        text = f"{tracked.ref}: what was granted for it is not known after a restart; the next attempt brings it again"
        return Refusal.TEMPLATE_MISSING, text
    more = next(filter(None, (_more(one, _of_pod_set(kind, allowed, name)) for name, one in asked.items())), "")
    return (Refusal.REQUESTS_RAISED, f"{tracked.ref}: {more}; {_WAY_OUT}") if more else None


def ending(world: World, placement: Placement) -> PlacementEnding | None:
    """Return the end of a run with a pod that asks for more than was granted; None when none does.

    Each pod is counted once, and again when its spec was changed. Nothing is said of what was made without a note.
    """
    if world.local:
        return None
    pods = world.children(placement)
    new = [pod for pod in pods if _name(pod) not in placement.judged]
    if not new:
        return None
    kind = world.kind(placement)
    known = {each.uid: _allowed(each) for each in placement.objects.values()}
    for pod in new:
        allowed = known.get(_job_uid(world, pod))
        mine = _of_pod_set(kind, allowed, ownership.pod_set(pod.metadata)) if allowed is not None else None
        more = _more(pod_requests(pod.spec), mine) if mine is not None else ""
        if more:
            text = f"pod {pod.metadata.namespace}/{pod.metadata.name}: {more}; {_WAY_OUT}"
            return PlacementEnding(kind=EndingKind.EVICTED, reason=RAISED, message=text)
    placement.judged = frozenset(map(_name, pods))
    return None


def _per_pod(placement: Placement, pod_set: str) -> dict[str, int]:
    for one in placement.pod_sets:
        if one.name == pod_set and one.count > 0:
            return {name: amount // one.count for name, amount in one.requests}
    return {}


def _allowed(tracked: Tracked) -> Mapping[str, int] | None:
    if tracked.granted is not None or tracked.object is None:
        return tracked.granted
    return _noted(tracked.object.metadata)


def _noted(meta: ObjectMeta) -> dict[str, int] | None:
    text = meta.annotations.get(ANNOTATION_GRANTED, "")
    if not text or len(text) > GRANTED_BYTES_MAX:
        return None
    try:
        return _GRANTED.decode(text)
    except UNREADABLE:
        return None


def _more(asked: Mapping[str, int], allowed: Mapping[str, int]) -> str:
    """Return what is more than it may be, in words; "" for nothing."""
    found = [
        f"{name}: a pod asks for {amounts.to_text(amount, name)} in this cluster,"
        f" {amounts.to_text(allowed.get(name, 0), name)} was granted for it"
        for name, amount in sorted(asked.items())
        if amount > allowed.get(name, 0)
    ]
    more = f" (and {len(found) - _NAMED_MAX} more)" if len(found) > _NAMED_MAX else ""
    return "; ".join(found[:_NAMED_MAX]) + more


def _name(pod: Pod) -> tuple[str, int]:
    return pod.metadata.uid, pod.metadata.generation


def _job_uid(world: World, pod: Pod) -> str:
    maker = world.objects.maker(pod)
    return maker.uid if maker is not None else ""
