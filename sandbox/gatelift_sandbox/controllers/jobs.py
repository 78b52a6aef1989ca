"""Stand-in for the Job controller: from a Job and its pods to the status it shall have and the pods to make. Pure.

As the real one: pods carry a tracking finalizer, so none is missed; ended pods are first noted in
`uncountedTerminatedPods`, then let go, then counted. `job_pods` makes the pods, `job_status` the conditions.
One difference: failed pods are replaced after a shorter pause (BACKOFF_SECONDS), so that sandboxes are not slow.
"""

from __future__ import annotations

from gatelift_kube.values import resources as known
from gatelift_sandbox.controllers import job_pods, job_status
from gatelift_sandbox.controllers.controller import (
    Action,
    Controller,
    DeleteIfSame,
    PatchObject,
    WatchedKey,
    event,
    is_true,
    owner_uid,
)
from gatelift_sandbox.controllers.job_pass import Pass
from gatelift_sandbox.controllers.job_pods import TRACKING_FINALIZER
from gatelift_sandbox.embedded.documents import Document, at, copied, items, meta, timestamp
from gatelift_sandbox.embedded.kinds import StorageKey
from gatelift_sandbox.embedded.rules.jobs import JOB_CONTROLLER
from gatelift_sandbox.embedded.store import Store
from gatelift_sandbox.embedded.watches import StoreChange, Stored

SOURCE = "job-controller"
BACKOFF_SECONDS = 0.5
"""Pause before the first replacement of a failed pod, doubled with each failure. The real controller takes 10 s."""
BACKOFF_SECONDS_MAX = 30.0
PODS_AT_ONCE_MAX = 500
"""Pods made or deleted in one pass, as the real controller."""
_JOB: StorageKey = ("batch", "jobs")
_POD: StorageKey = ("", "pods")


class Jobs(Controller):
    """Keeps which pods belong to which Job."""

    user = "system:serviceaccount:kube-system:job-controller"

    def __init__(self) -> None:
        super().__init__()
        self._jobs: dict[str, WatchedKey] = {}
        self._pods: dict[str, set[WatchedKey]] = {}
        self._failed_at: dict[str, float] = {}

    def notice(self, storage: StorageKey, change: StoreChange) -> None:
        """Follow Jobs and pods that a Job controls."""
        stored = change.after
        key = WatchedKey(storage=storage, namespace=stored.namespace, name=stored.name)
        if storage == _JOB:
            if change.removed:
                self._jobs.pop(stored.uid, None)
                self._failed_at.pop(stored.uid, None)
            else:
                self._jobs[stored.uid] = key
            self.mark(key)
            for pod in sorted(self._pods.get(stored.uid, ()), key=str) if change.removed else ():
                self.mark(pod)
        elif storage == _POD:
            uid, before = _controller(stored), _controller(change.before)
            if before and before != uid:
                self._lost(before, key)
            if not uid:
                return
            pods = self._pods.setdefault(uid, set())
            (pods.discard if change.removed else pods.add)(key)
            if not pods:
                del self._pods[uid]
            self.mark(self._jobs.get(uid, key))

    def _lost(self, uid: str, pod: WatchedKey) -> None:
        """Take that somebody took a pod off its Job, which makes another one for it."""
        pods = self._pods.get(uid, set())
        pods.discard(pod)
        if not pods:
            self._pods.pop(uid, None)
        self.mark(pod)
        if uid in self._jobs:
            self.mark(self._jobs[uid])

    def decide(self, store: Store, key: WatchedKey, now: float) -> list[Action]:
        """Return what a Job needs next."""
        if key.storage == _POD:
            return self._let_go(store, key)
        job = store.look(_JOB, key.namespace, key.name)
        if job is None or (at(job, "spec", "managedBy") or JOB_CONTROLLER) != JOB_CONTROLLER:
            return []
        uid = meta(job)["uid"]
        pods = [store.look(_POD, pod.namespace, pod.name) for pod in sorted(self._pods.get(uid, ()), key=str)]
        mine = [pod for pod in pods if pod is not None and owner_uid(pod) == uid]
        status = copied(job.get("status") or {})
        look = Pass(job=job, now=now, tally=job_pods.tally(job, mine), status=status)
        if meta(job).get("deletionTimestamp"):
            return self._release_all(look)
        if job_status.finished(status):
            return self._after(look, key)
        self._step(store, look, key)
        if look.status != (job.get("status") or {}):
            look.actions.append(_status_patch(look))
        # The status comes first where pods are to be let go: they are counted before they vanish.
        return sorted(look.actions, key=lambda action: not _is_status(action))

    def _step(self, store: Store, look: Pass, key: WatchedKey) -> None:
        self._count(look)
        # Who has announced its end is told of no suspension any more, and has the start time that it had.
        if not job_status.announces_end(look) and job_status.suspension(look):
            suspended = look.spec.get("suspend")
            reason, text = ("Suspended", "Job suspended") if suspended else ("Resumed", "Job resumed")
            look.actions.append(event(store, known.JOB, look.job, look.now, reason=reason, message=text, source=SOURCE))
        if not look.spec.get("suspend") and not look.status.get("startTime"):
            look.status["startTime"] = timestamp(look.now)
        job_status.outcome(look)
        if job_status.announces_end(look):
            self._delete(look, look.tally.active, count=True)
            said = job_status.finish(look)
            if said is not None:
                reason, text, bad = said
                look.actions.append(
                    event(store, known.JOB, look.job, look.now, reason=reason, message=text, source=SOURCE, warning=bad)
                )
        elif look.spec.get("suspend"):
            self._delete(look, look.tally.active, count=False)
        else:
            self._size(store, look, key)
        deadline = job_status.deadline(look)
        if deadline is not None and deadline > look.now:
            self.later(key, deadline)

    def _count(self, look: Pass) -> None:
        """Note ended pods, let noted ones go, and count those that were let go."""
        tally, status = look.tally, look.status
        noted = status.get("uncountedTerminatedPods") or {}
        held = {meta(pod)["uid"] for pod in tally.ended_held}
        new: Document = {}
        for outcome, ended in (("succeeded", tally.succeeded_held), ("failed", tally.failed_held)):
            before = [uid for uid in noted.get(outcome) or () if uid in held]
            gone = [uid for uid in noted.get(outcome) or () if uid not in held]
            after = before + [meta(pod)["uid"] for pod in ended if meta(pod)["uid"] not in before]
            if gone:
                status[outcome] = status.get(outcome, 0) + len(gone)
            if after:
                new[outcome] = after
            if outcome == "failed" and len(after) > len(before):
                self._failed_at[meta(look.job)["uid"]] = look.now
        status["uncountedTerminatedPods"] = new
        if tally.indexed_done or job_pods.outgrown(look.job, status):
            status["completedIndexes"] = job_pods.ranges(
                job_pods.in_range(
                    look.job, job_pods.indexes(str(status.get("completedIndexes") or "")) | tally.indexed_done
                )
            )
            status["succeeded"] = len(job_pods.indexes(status["completedIndexes"])) - len(new.get("succeeded", ()))
        look.actions += [_unfinalize(pod) for pod in tally.ended_held + tally.spared]
        _number(status, "active", len(tally.active))
        status["ready"] = sum(is_true(items(pod, "status", "conditions"), "Ready") for pod in tally.active)
        status["terminating"] = len(tally.terminating)

    def _size(self, store: Store, look: Pass, key: WatchedKey) -> None:
        """Make missing pods, delete surplus ones."""
        wanted = job_pods.wanted(look.job, look.status, look.tally)
        surplus = job_pods.beyond(look.job, look.tally)
        out = {meta(pod)["uid"] for pod in surplus}
        active = [pod for pod in look.tally.active if meta(pod)["uid"] not in out]
        if len(active) > wanted:
            surplus += sorted(active, key=job_pods.keep_first)[: len(active) - wanted]
        if surplus:
            self._delete(look, surplus[:PODS_AT_ONCE_MAX], count=False)
            return
        ending = len(look.tally.terminating) if job_pods.patient(look.job) else 0
        missing = min(wanted - len(active) - ending, PODS_AT_ONCE_MAX)
        if missing <= 0:
            return
        wait = self._pause(look)
        if wait > look.now:
            self.later(key, wait)
            return
        made = job_pods.make(look.job, look.status, look.tally, missing)
        look.actions += made
        if made:
            text = f"Created {len(made)} pods" if len(made) > 1 else "Created pod"
            look.actions.append(
                event(store, known.JOB, look.job, look.now, reason="SuccessfulCreate", message=text, source=SOURCE)
            )
            if len(made) + len(active) + ending < wanted:
                self.later(key, look.now)

    def _pause(self, look: Pass) -> float:
        """Return when the next pod may be made."""
        failed = job_pods.total(look.status, "failed")
        last = self._failed_at.get(meta(look.job)["uid"])
        if not failed or last is None:
            return look.now
        return last + min(BACKOFF_SECONDS * 2.0 ** min(failed - 1, 16), BACKOFF_SECONDS_MAX)

    def _delete(self, look: Pass, pods: list[Document], *, count: bool) -> None:
        """Delete pods. Without `count` they lose the finalizer first, and so are no failures."""
        for pod in pods:
            if not count and TRACKING_FINALIZER in (meta(pod).get("finalizers") or ()):
                look.actions.append(_unfinalize(pod))
            look.actions.append(_deletion(pod))
        if pods:  # they run on until their kubelets say otherwise
            look.status["terminating"] = look.status.get("terminating", 0) + len(pods)
        if pods and not count:
            _number(look.status, "active", look.status.get("active", 0) - len(pods))
            look.status["ready"] = min(look.status.get("ready", 0), look.status.get("active", 0))

    def _release_all(self, look: Pass) -> list[Action]:
        held = [pod for pod in look.tally.pods if TRACKING_FINALIZER in (meta(pod).get("finalizers") or ())]
        return [_unfinalize(pod) for pod in held]

    def _after(self, look: Pass, key: WatchedKey) -> list[Action]:
        """Clean up after a finished Job: leftover finalizers, and the Job itself when its time is over."""
        found = self._release_all(look)
        seconds = look.spec.get("ttlSecondsAfterFinished")
        if seconds is None:
            return found
        when = job_status.finished_at(look.status) + float(seconds)
        if when > look.now:
            self.later(key, when)
            return found
        about = meta(look.job)
        return [
            *found,
            DeleteIfSame(
                resource=known.JOB,
                namespace=about["namespace"],
                name=about["name"],
                uid=about["uid"],
                propagation="Foreground",
            ),
        ]

    def _let_go(self, store: Store, key: WatchedKey) -> list[Action]:
        """Track a pod no longer whose Job is gone, or that was taken off it."""
        pod = store.look(_POD, key.namespace, key.name)
        if pod is None or owner_uid(pod) in self._jobs:
            return []
        owner: Document = next((o for o in meta(pod).get("ownerReferences") or () if o.get("controller")), {})
        held = TRACKING_FINALIZER in (meta(pod).get("finalizers") or ())
        return [_unfinalize(pod)] if held and owner.get("kind", "Job") == "Job" else []


def _controller(stored: Stored | None) -> str:
    """Return the UID of what controls a pod, "" for none; nothing is taken apart that names no owner."""
    return owner_uid(stored.view()) if stored is not None and b'"ownerReferences":[' in stored.raw else ""


def _is_status(action: Action) -> bool:
    return isinstance(action, PatchObject) and action.resource is known.JOB


def _number(status: Document, name: str, value: int) -> None:
    """Set a count; zero is left out, as the real server does."""
    if value > 0:
        status[name] = value
    else:
        status.pop(name, None)


def _status_patch(look: Pass) -> PatchObject:
    before, after = look.job.get("status") or {}, look.status
    about = meta(look.job)
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    changed |= {key: None for key in before if key not in after}
    if changed.get("uncountedTerminatedPods") == {}:
        changed["uncountedTerminatedPods"] = {"succeeded": None, "failed": None}
    elif "uncountedTerminatedPods" in changed:
        noted = after["uncountedTerminatedPods"]
        changed["uncountedTerminatedPods"] = {key: noted.get(key) for key in ("succeeded", "failed")}
    return PatchObject(
        resource=known.JOB,
        namespace=about["namespace"],
        name=about["name"],
        uid=about["uid"],
        version=about["resourceVersion"],
        patch={"status": changed},
        subresource="status",
    )


def _unfinalize(pod: Document) -> PatchObject:
    about = meta(pod)
    left = [each for each in about.get("finalizers") or () if each != TRACKING_FINALIZER]
    return PatchObject(
        resource=known.POD,
        namespace=about["namespace"],
        name=about["name"],
        uid=about["uid"],
        patch={"metadata": {"finalizers": left or None}},
    )


def _deletion(pod: Document) -> DeleteIfSame:
    about = meta(pod)
    return DeleteIfSame(resource=known.POD, namespace=about["namespace"], name=about["name"], uid=about["uid"])
