"""One pod on a stand-in node: what its containers do as time passes. Pure; `machine` turns it into writes.

States: not started, running, waiting for a restart, stopping (a stop time is set), ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from gatelift_kube.values.timestamps import to_seconds
from gatelift_sandbox.behaviour import OOM_KILLED, SIGKILL_EXIT, Behaviour
from gatelift_sandbox.kubelet.views import PodView

GRACE_SECONDS_MIN = 1.0
"""A kubelet gives containers a second even where the pod was deleted with grace 0."""
RESTART_SECONDS = 10.0
RESTART_SECONDS_MAX = 300.0
"""A kubelet's back-off between restarts of a container: none, then 10 s, doubled up to five minutes."""
UNREADABLE = "InvalidSandboxAnnotation"
NEVER_STARTED = "ContainerStatusUnknown"
"""As a kubelet says of containers whose end it did not see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the containers ended for good."""

    exit_code: int
    reason: str
    at: float
    message: str = ""

    @property
    def phase(self) -> str:
        """Phase that this gives the pod."""
        return "Failed" if self.exit_code else "Succeeded"


@dataclass(slots=True, kw_only=True)
class Run:
    """The containers of one pod. Times are monotonic seconds; all containers do the same at the same time."""

    behaviour: Behaviour
    ip: str
    started: float  # of the pod
    running_since: float | None  # of the present life of the containers; None while waiting for a restart
    restarts: int = 0
    restart_at: float = inf
    stop_at: float = inf
    stop_exit: int = 0
    last_exit: int | None = None
    ended: Ended | None = None

    def next_moment(self) -> float:
        """Return when something happens by itself, inf if nothing will."""
        if self.ended is not None:
            return inf
        return min(self.stop_at, self.restart_at, self._exit_at())

    def advance(self, view: PodView, now: float) -> bool:
        """Let everything happen that is due by `now`; return whether anything did."""
        happened = False
        while self.ended is None and self.next_moment() <= now:
            happened = True
            moment = self.next_moment()
            if self.stop_at <= moment:
                self._end(self.stop_exit, moment)
            elif self.restart_at <= moment:
                self.running_since, self.restart_at = moment, inf
            else:
                self._exit(view, moment)
        return happened

    def stop(self, grace_seconds: float, now: float) -> None:
        """SIGTERM with a grace period from `now`. Asked again, it can only come earlier."""
        if self.ended is not None:
            return
        if self.running_since is None:  # between two restarts nothing runs
            self._end(self.last_exit or 0, now)
            return
        grace = max(grace_seconds, GRACE_SECONDS_MIN)
        takes = self.behaviour.stop_seconds
        by_itself = self.stop_at if self.stop_exit != SIGKILL_EXIT else inf
        orderly = min(by_itself, now + takes)
        killed = now + grace
        if min(orderly, killed) < self.stop_at:
            kills = killed < orderly
            self.stop_at, self.stop_exit = (killed, SIGKILL_EXIT) if kills else (orderly, self.behaviour.stop_exit_code)

    def _exit_at(self) -> float:
        if self.running_since is None or self.behaviour.run_seconds is None or self.stop_at < inf:
            return inf  # a container that was told to stop has left what it was doing
        return self.running_since + self.behaviour.run_seconds

    def _exit(self, view: PodView, moment: float) -> None:
        code = SIGKILL_EXIT if self.behaviour.exceed_memory else self.behaviour.exit_code
        policy = view.spec.restart_policy
        if policy == "Always" or (policy == "OnFailure" and code):
            self.last_exit, self.running_since = code, None
            wait = 0.0 if self.restarts == 0 else min(RESTART_SECONDS * 2 ** (self.restarts - 1), RESTART_SECONDS_MAX)
            self.restarts += 1
            self.restart_at = moment + wait
            return
        self._end(code, moment, oom=self.behaviour.exceed_memory)

    def _end(self, code: int, moment: float, *, oom: bool = False) -> None:
        self.ended = Ended(exit_code=code, reason=exit_reason(code, oom=oom), at=moment)
        self.running_since = None


def exit_reason(code: int, *, oom: bool) -> str:
    """Return the reason that a container runtime gives for an exit code."""
    if oom:
        return OOM_KILLED
    return "Error" if code else "Completed"


def grace_of(view: PodView) -> float:
    """Return the grace period of a pod that is being deleted, or that has vanished from the API."""
    asked = view.metadata.deletion_grace_period_seconds
    return float(view.spec.termination_grace_period_seconds if asked is None else asked)


def resumed(view: PodView, behaviour: Behaviour, *, ip: str, now: float, wall_offset: float) -> Run:
    """Return the run of a pod that an earlier life of this kubelet had started, from what it had reported."""
    started = now
    if view.status.start_time is not None:
        started = min(now, to_seconds(view.status.start_time) - wall_offset)
    since, restarts = started, 0
    for status in view.status.container_statuses[:1]:
        restarts = status.restart_count
        text = status.state.get("running", {}).get("startedAt")
        if text:
            since = min(now, to_seconds(text) - wall_offset)
    return Run(
        behaviour=behaviour, ip=view.status.pod_ip or ip, started=started, running_since=since, restarts=restarts
    )
