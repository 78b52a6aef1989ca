"""One hostile tenant beside honest ones, on a worker's agent: his objects there, and what a manager says of his work.

As `manager`: the honest live the same history twice. Nothing leaves `handle`; what is honest is made, runs, is
reported and forgotten alike; and what was set aside is named.
"""

from __future__ import annotations

import contextlib
import random
import typing
from typing import Any

import msgspec

from gatelift_agent.core.values.settings import KeepFinished
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.errors import UndecodableError
from gatelift_kube.decoding.decoding import STRUCTS
from gatelift_kube.values.resources import JOB, NODE, POD, ObjectRef, Resource
from gatelift_kube.values.unreadable import UNREADABLE
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.violations import WireViolation
from support.agent.group_stage import MARKS, SPEC, blob, granted, member
from support.agent.stage import Stage
from support.agent.values import NAMESPACE_NAME, commit_messages
from support.fuzz import fuzzing
from support.fuzz.manager import CHECKED, TENANT, Lived

COMMANDS = tuple(each for each in typing.get_args(m.Command) if each not in {m.Cordon, m.Confirm, m.CertificateRenewed})
"""A manager may cordon, which is everybody's; Confirm carries keys of any, so it is said of the tenant's by hand."""
HIS = frozenset({"bad", "bad-job", "bad-crew", "nobody"})
"""UIDs of his placements."""
MEMBERS = ("bad-m1", "bad-m2")
"""The pods of his group."""
WORDS = ("PodGroup", *MEMBERS, *(f"home-{each}" for each in MEMBERS))


def live(seed: int, cases: int, keys: tuple[str, ...], *, hostile: bool = True) -> Lived:
    """Live through one history; without `hostile` nothing is done, and the same things happen to the honest."""
    surfaces, Contained.surfaces = Contained.surfaces, False
    try:
        return _Tenancy(seed, keys).live(cases, hostile=hostile)
    finally:
        Contained.surfaces = surfaces


class _Tenancy:
    def __init__(self, seed: int, keys: tuple[str, ...]) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - draws cases, guards nothing
        self.keys = keys
        keep = KeepFinished(failed_seconds=30.0, objects_max=2) if seed % 2 else KeepFinished()
        self.stage = Stage(keep=keep)
        self.lived = Lived()
        self.last = ""
        self.round = self.epoch = 0
        self.stage.create(NODE, {"metadata": {"name": "bad-node"}})
        self.stage.start()

    def live(self, cases: int, *, hostile: bool) -> Lived:
        self._honest_begins()
        for number in range(cases):
            if number % 25 == 0:
                self._tenant_begins()
            if hostile:
                self.lived.cases += 1
                self._case()
            self.stage.pass_seconds(0.2)
            self._name_culprits()
            if number % CHECKED == CHECKED - 1:
                self._honest_ends()
                self._honest_begins()
            if number % 100 == 99:
                self.stage.restart()
                self._name_culprits()
        self._honest_ends()
        return self.lived

    # --- the honest -----------------------------------------------------------------------------------------------

    def _honest_begins(self) -> None:
        self._connected()
        self.round += 1
        name = f"good-{self.round}"
        self.stage.place(PlacementKey(name, 1), name=name)
        self.stage.confirm(PlacementKey(name, 1))
        self.stage.pass_seconds(1.0)
        if self.stage.document(POD, name) is not None:
            self.stage.run(name)

    def _honest_ends(self) -> None:
        name = f"good-{self.round}"
        key = PlacementKey(name, 1)
        with contextlib.suppress(RequestRefusedError):
            self.stage.finish(name)
        self.stage.pass_seconds(5.0)
        self._connected()
        said = [type(each).__name__ for each in self.stage.peer.heard if getattr(each, "key", None) == key]
        self.stage.send(m.Forget(key=key))
        self.stage.pass_seconds(2.0)
        left = self.stage.state(key), self.stage.document(POD, name) is None
        self.lived.books[name] = (sorted({*said}), left)

    def _connected(self) -> None:
        """Wait for a session: what cannot be taken ends one, and the next one begins."""
        for _ in range(200):
            if self.stage.peer.open:
                return
            self.stage.pass_seconds(1.0)
        raise AssertionError(f"no session within 200 s; last case: {self.last[:2000]}")

    # --- the tenant -----------------------------------------------------------------------------------------------

    def _tenant_begins(self) -> None:
        """Place the tenant's pod, Job and group anew, under an epoch of their own."""
        self._connected()
        self.epoch += 1
        for kind, name, objects in (("Pod", "bad", ("bad",)), ("Job", "bad-job", ("bad-job",)), _CREW):
            if self.epoch > 1:
                self.stage.send(m.Stop(key=PlacementKey(name, self.epoch - 1), reason="x"))
                self.stage.pass_seconds(1.0)
                for each in objects:
                    self._remove(JOB if kind == "Job" else POD, each)
                self.stage.send(m.Forget(key=PlacementKey(name, self.epoch - 1)))
                self.stage.pass_seconds(1.0)
            key = PlacementKey(name, self.epoch)
            if kind == "PodGroup":
                self.stage.send(*_group(key))
            else:
                self.stage.place(key, kind, name)
            self.stage.confirm(key)
            self.stage.pass_seconds(1.0)

    def _remove(self, resource: Resource, name: str) -> None:
        with contextlib.suppress(RequestRefusedError):
            self.stage.change(resource, name, {"metadata": {"finalizers": None}})
            self.stage.remove(resource, name, grace=0)

    def _case(self) -> None:
        if self.rng.random() < 0.35 and self.stage.peer.open and self._is_told():
            return
        self._edits()

    def _is_told(self) -> bool:
        keys = (*(PlacementKey(uid, self.epoch) for uid in sorted(HIS - {"nobody"})), PlacementKey("nobody", 3))
        made = fuzzing.message(self.rng.choice(COMMANDS), self.rng, fuzzing.Known(keys, WORDS))
        if made is None:
            self.lived.refused += 1
            return False
        self.last = f"told {made}"
        said: tuple[m.Message, ...] = (made,)
        if isinstance(made, m.Commit):  # most commits name templates that were never sent
            said = (commit_messages()[0], made)
        try:
            self.stage.send(*said)
        except WireViolation:
            self.lived.refused += 1
        return True

    def _edits(self) -> None:
        found = [(resource, name) for resource, name in _HIS_OBJECTS if self._document(resource, name) is not None]
        if not found:
            return
        resource, name = self.rng.choice(found)
        before = self._document(resource, name)
        assert before is not None
        part = self.rng.choice(("annotations", "labels", "spec", "status", "status"))
        kind = STRUCTS[resource.group, resource.kind]
        changed = fuzzing.mutated(before, kind, self.rng, self.keys, part)
        self.last = f"{resource.kind} {name}: {changed}"
        patch = _patch(before, changed, part)
        try:
            msgspec.json.decode(msgspec.json.encode(changed), type=kind)
            subresource = "status" if part == "status" and resource != NODE else ""
            body = msgspec.json.encode(patch)
            namespace = "" if resource == NODE else before["metadata"]["namespace"]
            self.stage.store.patch(
                self.stage.store.kinds.of(resource),
                namespace,
                name,
                body,
                "application/merge-patch+json",
                self.stage.now,
                subresource=subresource,
            )
        except (RequestRefusedError, UndecodableError, *UNREADABLE):
            self.lived.refused += 1
        self.stage.settle()

    def _document(self, resource: Resource, name: str) -> dict[str, Any] | None:
        return self.stage.document(resource, name, *(("",) if resource == NODE else ()))

    # --- who is named ---------------------------------------------------------------------------------------------

    def _name_culprits(self) -> None:
        for key in self.stage.machine.world.contained.resting:
            his = (
                (isinstance(key, PlacementKey) and key.uid in HIS)
                or (isinstance(key, ObjectRef) and TENANT in key.key.name)
                or key in {each.__name__ for each in COMMANDS}  # a message that was not accepted, which names its key
            )
            if not his:
                raise AssertionError(f"set aside is {key}, which is not the tenant's; last case: {self.last[:2000]}")
        for note in self.stage.notes:
            where = dict(note.fields).get("traceback", "")
            if where:
                self.lived.aside[where.strip()[-400:]] += 1
        self.stage.notes.clear()


_HIS_OBJECTS = ((POD, "bad"), (JOB, "bad-job"), (NODE, "bad-node"), *((POD, each) for each in MEMBERS))
_CREW = ("PodGroup", "bad-crew", MEMBERS)


def _group(key: PlacementKey) -> tuple[m.Message, ...]:
    """Return what places a group of two."""
    named: dict[str, Any] = {"kind": "PodGroup", "namespace": NAMESPACE_NAME, "name": key.uid, "queue": "queue"}
    sets = (granted(len(MEMBERS)),)
    commit = m.Commit(key=key, objects=tuple(member(each) for each in MEMBERS), pod_sets=sets, **named)
    return m.Offer(key=key, pod_sets=sets, **named), blob(SPEC), blob(MARKS), commit


def _patch(before: dict[str, Any], after: dict[str, Any], part: str) -> dict[str, Any]:
    """Return the merge patch that makes one part of a document into another."""
    if part in ("annotations", "labels"):
        return {"metadata": {part: _difference(before["metadata"].get(part) or {}, after["metadata"].get(part) or {})}}
    old, new = before.get(part), after.get(part)
    return {part: _difference(old, new) if isinstance(old, dict) and isinstance(new, dict) else new}


def _difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return {**{key: None for key in old if key not in new}, **{k: v for k, v in new.items() if old.get(k) != v}}
