"""What is known of the cluster's objects, newest version of each: the placements' own objects and their children.

Only the machine writes here, from watch events and from the answers of writes. Versions never go back: an answer to a
write is newer than the watch events that are still on their way. Raw JSON is kept for own objects only; children (pods
that a Job made) are counted, so their typed form is enough. What a placement tracks is an own object, whatever its
labels and owners say. Whose child a pod is, its Job's UID tells; it stays that, whatever becomes of its labels and
owners, and where it carries a mark that is asked first (`orphans`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass

from gatelift_agent.core.watched import ownership
from gatelift_kinds.registry import SERVED
from gatelift_kinds.shared import pod_trouble, pods, sized_pods
from gatelift_kinds.shared.pod_trouble import Trouble
from gatelift_kinds.shared.values import Maker
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.core import Pod, raw_status
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.objects.versions import is_older
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef, Resource

GONE_REMEMBERED_MAX = 10_000
"""Removed objects whose last version is remembered: answers of writes come within `WRITE_SECONDS_MAX` of them."""


@dataclass(frozen=True, slots=True)
class Held:
    """One object as last seen."""

    ref: ObjectRef
    object: KubeObject
    raw: bytes


class Objects:
    """Newest known version of each object of interest.

    `tracked` says whether a placement has or wants one there, `marked` which tracked object a pod was made by,
    `named` which one it names as its maker.
    """

    __slots__ = ("_children", "_gone", "_makers", "_marked", "_named", "_own", "_raws", "_tracked", "_troubles")

    def __init__(
        self,
        tracked: Callable[[ObjectRef, str], bool] = lambda _ref, _uid: False,
        marked: Callable[[Pod], Maker | None] = lambda _pod: None,
        named: Callable[[ObjectMeta], Maker | None] = SERVED.maker_of,
    ) -> None:
        self._tracked = tracked
        self._marked = marked
        self._named = named
        self._gone: dict[str, ObjectMeta] = {}
        self._own: dict[ObjectRef, Held] = {}
        self._children: dict[str, dict[str, Pod]] = {}
        self._makers: dict[str, Maker] = {}
        self._troubles: dict[str, Trouble] = {}
        self._raws: dict[str, bytes] = {}
        """Of pods that wait at the gate of elastic work: what lets them go is made of it."""

    def seen(self, resource: Resource, obj: KubeObject, raw: bytes) -> bool:
        """Take a version of an object; False when it is known, or older than what is, and changes nothing."""
        meta = obj.metadata
        maker = self.maker(obj)
        if isinstance(obj, Pod) and maker is not None:
            return self._child_seen(obj, maker, raw)
        ref = ref_of(resource, meta)
        known = self._own.get(ref)
        if known is not None and (is_same(meta, known.object.metadata) or is_older(meta, known.object.metadata)):
            return False
        buried = self._gone.get(meta.uid)
        if buried is not None and not is_older(buried, meta):
            return False  # the answer of a write that was slower than the watch
        self._own[ref] = Held(ref, obj, raw)
        return True

    def gone(self, resource: Resource, obj: KubeObject) -> bool:
        """Take an object's removal; False when it was not known, or another one has its name now."""
        meta = obj.metadata
        maker = self.maker(obj)
        if maker is not None:
            return self._child_gone(meta.uid, maker)
        ref = ref_of(resource, meta)
        known = self._own.get(ref)
        if known is None or known.object.metadata.uid != meta.uid:
            return False
        del self._own[ref]
        newer = meta if not is_older(meta, known.object.metadata) else known.object.metadata
        self._gone[meta.uid] = newer
        if len(self._gone) > GONE_REMEMBERED_MAX:
            del self._gone[next(iter(self._gone))]
        return True

    def maker(self, obj: KubeObject) -> Maker | None:
        """Return the Job whose child this is, None for an object of its own. A child stays one, whatever it says."""
        meta = obj.metadata
        if not isinstance(obj, Pod):
            return None
        known = self._makers.get(meta.uid)
        if known is not None:
            return known
        if self._tracked(ref_of(POD, meta), meta.uid):
            return None
        marked = self._marked(obj)
        if marked is not None:
            return marked
        return None if ownership.stands_alone(meta) else self._named(meta)

    def last_version(self, uid: str) -> str:
        """Return the version in which a watch called an object gone; "" for none, or none that is remembered."""
        buried = self._gone.get(uid)
        return buried.resource_version if buried is not None else ""

    def get(self, ref: ObjectRef) -> Held | None:
        """Return the object there, None when none is known."""
        return self._own.get(ref)

    def own(self) -> Iterator[Held]:
        """All objects but children."""
        return iter(tuple(self._own.values()))

    def children(self, job_uid: str) -> tuple[Pod, ...]:
        """Return the pods that a Job made."""
        return tuple(self._children.get(job_uid, {}).values())

    def count_children(self, job_uid: str) -> int:
        """Return how many pods a Job has made."""
        return len(self._children.get(job_uid, ()))

    def child(self, uid: str, jobs: Container[str]) -> Pod | None:
        """Return the pod of this UID, None where none is known that one of these Jobs made."""
        maker = self._makers.get(uid)
        return self._children.get(maker.uid, {}).get(uid) if maker is not None and maker.uid in jobs else None

    def knows_child(self, uid: str) -> bool:
        """Say whether a pod is known as one that a Job made."""
        maker = self._makers.get(uid)
        return maker is not None and uid in self._children.get(maker.uid, {})

    def raw_of_gated(self, uid: str) -> bytes:
        """Return the JSON of a pod that waits at the gate of elastic work; b"" for none, or where it was not seen."""
        return self._raws.get(uid, b"")

    def all_children(self) -> tuple[Pod, ...]:
        """Return the pods of all Jobs."""
        return tuple(pod for children in self._children.values() for pod in children.values())

    def adopt(self, pod: Pod, maker: Maker) -> None:
        """Know a pod as the child of this Job from now on, whatever it was taken for."""
        known = self._makers.get(pod.metadata.uid)
        if known is not None and known.uid != maker.uid:
            self._child_gone(pod.metadata.uid, known)
        held = self._own.get(ref_of(POD, pod.metadata))
        raw = b""
        if held is not None and held.object.metadata.uid == pod.metadata.uid:
            del self._own[held.ref]
            raw = held.raw
        self._child_seen(pod, maker, raw)

    def forget_namespace(self, namespace: str) -> None:
        """Forget all objects of a namespace that is no longer watched."""
        self._own = {ref: held for ref, held in self._own.items() if ref.key.namespace != namespace}
        for pod in self.all_children():
            if pod.metadata.namespace == namespace:
                self._child_gone(pod.metadata.uid, self._makers[pod.metadata.uid])

    def trouble(self, job_uid: str, *, by_count: bool = False) -> Trouble | None:
        """Return what keeps the pods of a Job from running; one that failed counts while no other is ready.

        `by_count`: its pods are let go by count, so one that waits at the gate of that alone is in no trouble (HD-709).
        """
        if not self._troubles:  # as nearly always
            return None
        children = self.children(job_uid)
        found = [pod for pod in children if pod.metadata.uid in self._troubles]
        if by_count:
            found = [pod for pod in found if not sized_pods.waits_for_size(pod)]
        if found and any(map(pods.ready, children)):
            found = [pod for pod in found if not pods.over(pod)]
        return pod_trouble.first(self._troubles[pod.metadata.uid] for pod in found)

    def _note_trouble(self, pod: Pod, raw: bytes) -> None:
        meta, found = pod.metadata, None
        if raw and meta.deletion_timestamp is None and not pods.ready(pod):
            read = pod_trouble.of_failed if pods.over(pod) else pod_trouble.of_status
            gates = () if pods.over(pod) else (each.name for each in pod.spec.scheduling_gates)
            found = pod_trouble.gated(meta.name, gates) or read(meta.name, raw_status(raw))
        if found is not None:
            self._troubles[meta.uid] = found
        else:
            self._troubles.pop(meta.uid, None)

    def _child_seen(self, pod: Pod, maker: Maker, raw: bytes) -> bool:
        children = self._children.setdefault(maker.uid, {})
        known = children.get(pod.metadata.uid)
        if known is not None and is_older(pod.metadata, known.metadata):
            return False
        children[pod.metadata.uid] = pod
        self._note_trouble(pod, raw)
        if sized_pods.is_gated(pod):
            self._raws[pod.metadata.uid] = raw or self._raws.get(pod.metadata.uid, b"")
        else:
            self._raws.pop(pod.metadata.uid, None)
        self._makers[pod.metadata.uid] = maker
        return True

    def _child_gone(self, uid: str, maker: Maker) -> bool:
        self._makers.pop(uid, None)
        self._troubles.pop(uid, None)
        self._raws.pop(uid, None)
        children = self._children.get(maker.uid, {})
        known = children.pop(uid, None)
        if not children:
            self._children.pop(maker.uid, None)
        return known is not None


def ref_of(resource: Resource, meta: ObjectMeta) -> ObjectRef:
    """Return where the object is."""
    return ObjectRef(resource, ObjectKey(meta.namespace, meta.name))


def is_same(new: ObjectMeta, known: ObjectMeta) -> bool:
    """Say whether both are one version of one object: what we wrote comes as the answer and by the watch."""
    return new.resource_version == known.resource_version and new.uid == known.uid
