"""A stage with a group at a worker: members that join and leave a live placement, and what a manager says of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.single import Leaver
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, POD_SPEC

SPEC = msgspec.json.encode(POD_SPEC)
MARKS = msgspec.json.encode({"labels": {"app": "crew"}, "annotations": {}})

NAMED: dict[str, Any] = {"kind": "PodGroup", "namespace": NAMESPACE_NAME, "name": "crew", "queue": "queue"}


def blob(content: bytes) -> m.TemplateBlob:
    return m.TemplateBlob(hash=hashlib.sha256(content).hexdigest(), content=content)


def member(name: str, uid: str = "", pod_set: str = "main") -> m.ObjectTemplate:
    return m.ObjectTemplate(
        name=name, pod_set=pod_set, template=blob(SPEC).hash, marks=blob(MARKS).hash, uid=uid or f"home-{name}"
    )


def granted(count: int, name: str = "main") -> m.PodSetRequest:
    return m.PodSetRequest(name=name, count=count)


class GroupStage(Stage):
    """See `Stage`. The group's placement is granted as many as it has at first, unless `count` says otherwise."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(registry=WITH_GROUPS, kinds=("PodGroup", "Pod", "Job"), **settings)
        self.number = 0

    def order(self, *members: m.ObjectTemplate | str, count: int | None = None) -> m.Commit:
        objects = tuple(member(each) if isinstance(each, str) else each for each in members)
        sets = (granted(len(objects) if count is None else count),)
        return m.Commit(
            key=KEY,
            kind="PodGroup",
            namespace=NAMESPACE_NAME,
            name="crew",
            queue="queue",
            objects=objects,
            pod_sets=sets,
        )

    def group(self, *members: m.ObjectTemplate | str, count: int | None = None) -> None:
        """Place a group."""
        order = self.order(*members, count=count)
        self.send(
            m.Offer(
                key=KEY, kind="PodGroup", namespace=NAMESPACE_NAME, name="crew", queue="queue", pod_sets=order.pod_sets
            )
        )
        self.send(blob(SPEC), blob(MARKS), order)

    def again(self, *members: m.ObjectTemplate | str, count: int) -> None:
        """Say the commit again, as in each new session."""
        self.send(blob(SPEC), blob(MARKS), self.order(*members, count=count))

    def edit(self, name: str, patch: dict[str, Any]) -> None:
        """Change a pod as somebody else would."""
        self.change(POD, name, patch)

    def say(
        self,
        join: Iterable[m.ObjectTemplate | str] = (),
        leave: Iterable[Leaver | str] = (),
        number: int | None = None,
        pod_sets: tuple[m.PodSetRequest, ...] = (),
    ) -> m.Change:
        """Say who joins and who leaves."""
        self.number = self.number + 1 if number is None else number
        said = m.Change(
            key=KEY,
            number=self.number,
            join=tuple(member(each) if isinstance(each, str) else each for each in join),
            leave=tuple(Leaver(name=each, uid=f"home-{each}") if isinstance(each, str) else each for each in leave),
            pod_sets=pod_sets,
        )
        self.send(said)
        return said

    def there(self) -> dict[str, str]:
        """Return of which user's pod each pod here says that it is."""
        pods = self.store.all(("", "pods"))
        found = [self.document(POD, each.name) for each in pods if each.namespace == NAMESPACE_NAME]
        metas = [each["metadata"] for each in found if each is not None]
        return {meta["name"]: meta.get("annotations", {}).get("gatelift.dev/user-uid", "") for meta in metas}

    def let_go(self) -> list[str]:
        """Return who is not at the gate."""
        return sorted(name for name in self.there() if not self.pod(name)["spec"].get("schedulingGates"))

    def may_run(self) -> list[str]:
        """Return who may run here by what the cluster holds: let go, not over, not deleted before it had a node."""
        found = [(name, self.pod(name)) for name in self.let_go()]
        return [
            name
            for name, pod in found
            if pod.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
            and (pod["spec"].get("nodeName") or not pod["metadata"].get("deletionTimestamp"))
        ]

    def gone(self) -> list[str]:
        """Return the UIDs of user's pods of which the agent said that nothing is here."""
        return [each.owner_uid for each in self.peer.of(m.ObjectReport) if each.gone]

    def new_session(self) -> None:
        """Break the stream, and begin a session that is not resumed."""
        self.cut_stream()
        self.mend(resume=False)
        self.number = 0
