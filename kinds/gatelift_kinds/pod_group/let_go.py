"""For which Workload, and as which pod set, pods of a group were let go at home: by what nobody can take off. Pure.

Labels and annotations of a pod are anybody's to change who may patch it, and its role is read from them. What it was
let go as stays, whatever they say later: its toleration names the placement, and by a digest the pod set
(`placed_mark`). The names that digests stand for are those of the Workload. Neighbour: `gathering` asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gatelift_kinds.pod_group.shapes import as_json, asks_alike
from gatelift_kinds.shared import placed_mark
from gatelift_kinds.shared.json_parts import Json
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import PodSet


class LetGo:
    """Pods without our gate that bear one mark of their own. Only this class writes what it holds.

    `_marks`: Workload and digest of the pod set, by UID. `_runs`: how many there are of a Workload. `_names`: pod sets
    by their digest. `_pod_sets`: those of the Workload that was asked about last. `_unread`: UIDs of pods whose digest
    stood for no name yet.
    """

    __slots__ = ("_marks", "_names", "_pod_sets", "_runs", "_unread")

    def __init__(self) -> None:
        self._marks: dict[str, tuple[str, str]] = {}
        self._runs: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._pod_sets: tuple[PodSet, ...] = ()
        self._unread: set[str] = set()

    def put(self, pod: Pod, *, lifted: bool) -> None:
        """Take in a pod, or another version of it."""
        uid = pod.metadata.uid
        every = placed_mark.read(pod.spec.tolerations) if lifted else ()
        own = [each for each in every if each.job_uid and placed_mark.is_of_pod(each, pod.metadata)]
        if not own or (uid in self._marks and len(own) > 1):
            return  # none is taken off, and whoever adds another one comes too late
        self.drop(uid)
        said = (own[0].key.uid, own[0].noted) if len(own) == 1 else ("", "")  # two say nothing, but that it was let go
        self._marks[uid] = said
        self._runs[said[0]] += bool(said[0])
        if said[1] and said[1] not in self._names:
            self._unread.add(uid)

    def drop(self, uid: str) -> None:
        """Let go of a pod that is gone."""
        self._unread.discard(uid)
        found = self._marks.pop(uid, None)
        if found is not None:
            self._runs -= Counter((found[0],))  # without zeros

    def learn(self, pod_sets: tuple[PodSet, ...]) -> list[str]:
        """Take the pod sets of their Workload; return the UIDs of pods that are to be read anew."""
        if pod_sets is self._pod_sets:
            return []
        self._pod_sets = pod_sets
        self._names |= {placed_mark.digest(each.name): each.name for each in pod_sets}
        return [uid for uid in self._unread if self._marks[uid][1] in self._names]

    def is_marked(self, uid: str) -> bool:
        """Say whether a pod was let go by us: it is none that its user made without our gate."""
        return uid in self._marks

    def runs_for(self, workload_uid: str) -> bool:
        """Say whether a pod was let go for a Workload."""
        return self._runs[workload_uid] > 0

    def pod_set(self, uid: str, said: Iterable[str]) -> str:
        """Return as which pod set a pod was let go, "" where nothing says so; `said`: names that it may have been."""
        noted = self._marks.get(uid, ("", ""))[1]
        if not noted:
            return ""
        known = self._names.get(noted)
        return known or next((each for each in said if each and placed_mark.digest(each) == noted), "")

    def likely(self, said: Iterable[str], spec: Json) -> str:
        """Return which pod set of their Workload a pod is of that runs, or may.

        One that it says, or the only one that there is, or that asks for what it asks for (HD-437); "" where none is.
        """
        names = [each.name for each in self._pod_sets]
        found = next((each for each in said if each in names), "")
        if found or len(names) == 1:
            return found or names[0]
        alike = [each.name for each in self._pod_sets if asks_alike(as_json(each.template.spec), spec)]
        return alike[0] if len(alike) == 1 else ""
