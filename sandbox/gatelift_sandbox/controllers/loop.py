"""Runs stand-in controllers: tells them of writes, performs what they want. Over the pipeline, or on the bare store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from gatelift_kube.process.clock import Clock
from gatelift_kube.values import resources as known
from gatelift_sandbox.controllers.collecting import Collector
from gatelift_sandbox.controllers.controller import (
    RETRY_SECONDS,
    Action,
    BindPod,
    Controller,
    CreateObject,
    DeleteIfSame,
    FinalizeNamespace,
    PatchObject,
)
from gatelift_sandbox.controllers.jobs import Jobs
from gatelift_sandbox.controllers.namespaces import Definitions, Namespaces
from gatelift_sandbox.controllers.pod_collecting import PodCollector
from gatelift_sandbox.controllers.scheduling import Scheduler
from gatelift_sandbox.embedded.builtin import CORE_EVENT
from gatelift_sandbox.embedded.documents import Document, encode, meta
from gatelift_sandbox.embedded.drafts import Deletion
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_sandbox.embedded.kinds import StorageKey
from gatelift_sandbox.embedded.patching import MERGE_PATCH
from gatelift_sandbox.embedded.pipeline import Pipeline
from gatelift_sandbox.embedded.rbac import AUTHENTICATED, User
from gatelift_sandbox.embedded.rules.cluster import NAMESPACE_FINALIZER
from gatelift_sandbox.embedded.store import Store
from gatelift_sandbox.embedded.watches import StoreChange

SETTLE_ROUNDS_MAX = 10_000
"""Controllers that are not quiet after so many rounds chase each other in circles."""
_MOOT = frozenset({404, 409})
"""Refusals that mean: the world has moved on, and a write that will be noticed says how."""


def all_controllers(authority: str) -> list[Controller]:
    """Return what a cluster has. `authority`: PEM of its CA."""
    return [Namespaces(authority), Definitions(), Collector(), Jobs(), PodCollector(), Scheduler()]


class ControllerLoop:
    """Runs controllers beside an embedded API server, through its admission."""

    def __init__(self, pipeline: Pipeline, controllers: Sequence[Controller], wall: Clock) -> None:
        self._pipeline = pipeline
        self._controllers = controllers
        self._wall = wall
        self._some = asyncio.Event()
        self._some.set()
        attach(pipeline.store, controllers)
        pipeline.store.listen(lambda _storage, _change: self._some.set())

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            self._some.clear()
            for controller in self._controllers:
                await self._turn(controller)
            await self._pause()

    async def _turn(self, controller: Controller) -> None:
        user = User(name=controller.user, groups=(AUTHENTICATED,))
        for key in controller.due(self._wall()):
            for action in controller.decide(self._pipeline.store, key, self._wall()):
                try:
                    await self._perform(user, action)
                except RequestRefusedError as failure:
                    if _is_event(action):
                        continue
                    if failure.code not in _MOOT:
                        controller.later(key, self._wall() + RETRY_SECONDS)
                    break

    async def _pause(self) -> None:
        deadlines = [when for each in self._controllers if (when := each.next_deadline()) is not None]
        wait = min(deadlines, default=None)
        seconds = None if wait is None else max(wait - self._wall(), 0.0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._some.wait()

    async def _perform(self, user: User, action: Action) -> None:
        kinds = self._pipeline.store.kinds
        match action:
            case CreateObject():
                await self._pipeline.create(user, kinds.of(action.resource), action.namespace, action.document)
            case PatchObject():
                await self._pipeline.patch(
                    user,
                    kinds.of(action.resource),
                    action.namespace,
                    action.name,
                    encode(_held(action)),
                    MERGE_PATCH,
                    action.subresource,
                )
            case DeleteIfSame():
                await self._pipeline.delete(
                    user, kinds.of(action.resource), action.namespace, action.name, _deletion(action)
                )
            case BindPod() | FinalizeNamespace():
                perform(self._pipeline.store, action, self._wall())


def attach(store: Store, controllers: Sequence[Controller]) -> None:
    """Tell controllers of all that is there and of each write to come."""

    def tell(storage: StorageKey, change: StoreChange) -> None:
        for controller in controllers:
            controller.notice(storage, change)

    for storage in store.kinds.storages():
        for stored in store.all(storage):
            tell(storage, StoreChange(None, stored, removed=False))
    store.listen(tell)


def settle(store: Store, controllers: Sequence[Controller], now: float) -> int:
    """Let attached controllers act on the bare store until nothing is left to do now; return how much was done."""
    done = 0
    for _ in range(SETTLE_ROUNDS_MAX):
        due = [(controller, key) for controller in controllers for key in controller.due(now)]
        if not due:
            return done
        for controller, key in due:
            for action in controller.decide(store, key, now):
                try:
                    perform(store, action, now)
                except RequestRefusedError as failure:
                    if _is_event(action):
                        continue
                    if failure.code not in _MOOT:
                        controller.later(key, now + RETRY_SECONDS)
                    break
                done += 1
    raise RuntimeError(f"the controllers are not quiet after {SETTLE_ROUNDS_MAX} rounds")


def perform(store: Store, action: Action, now: float) -> None:
    """Do what a controller wants, on the bare store; ApiError."""
    kinds = store.kinds
    match action:
        case CreateObject():
            store.create(kinds.of(action.resource), action.namespace, action.document, now)
        case PatchObject():
            store.patch(
                kinds.of(action.resource),
                action.namespace,
                action.name,
                encode(_held(action)),
                MERGE_PATCH,
                now,
                subresource=action.subresource,
            )
        case DeleteIfSame():
            store.delete(kinds.of(action.resource), action.namespace, action.name, _deletion(action), now)
        case BindPod():
            store.bind(kinds.of(known.POD), action.namespace, action.name, action.node, now, uid=action.uid)
        case FinalizeNamespace():
            _finalize(store, action.name, now)


def _finalize(store: Store, name: str, now: float) -> None:
    kind = store.kinds.of(known.NAMESPACE)
    namespace = store.get(kind, "", name).document()
    left = [each for each in namespace["spec"].get("finalizers") or () if each != NAMESPACE_FINALIZER]
    namespace["spec"] = {"finalizers": left} if left else {}
    store.update(kind, "", name, namespace, now, subresource="finalize")


def _held(action: PatchObject) -> Document:
    """Return the patch with its preconditions."""
    about: Document = {"uid": action.uid}
    if action.version:
        about["resourceVersion"] = action.version
    return {**action.patch, "metadata": {**meta(dict(action.patch)), **about}}


def _deletion(action: DeleteIfSame) -> Deletion:
    return Deletion(uid=action.uid, grace_seconds=action.grace_seconds, propagation=action.propagation)


def _is_event(action: Action) -> bool:
    return isinstance(action, CreateObject) and action.resource == CORE_EVENT
