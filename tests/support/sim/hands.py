"""What people let go at home around the webhook: it may run uncharged until it is put back, and that is due in seconds.

By who leads and reaches its API server all the time; until then by nobody. Then the pods that it had have their time to
stop, and no more. Knows no core and no kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from support.sim.objects import TruthError

PUT_BACK_SECONDS_MAX = 20.0
"""While somebody leads all the time: a watch that is behind, a write without an answer, and the next one."""
UNHEARD_SECONDS = 10.0
"""What each write of the object costs more that nobody answers, after that one: its whole time limit."""
STOP_SECONDS_MAX = 60.0
"""Of pods that are deleted: the longest that a simulated container takes, behind a slow controller."""


@dataclass(slots=True)
class LetGo:
    """One object that its user let go, and somebody could have put back since then without a break."""

    name: str
    since: float | None = None
    unheard: int = 0
    """How many writes of it had got no answer until then."""
    managed: bool = True
    """Whether it is still in a queue: else it is an object as anybody makes them, which nobody is to put back."""


@dataclass(slots=True)
class Pod:
    """One pod of such an object."""

    root: str
    name: str
    """Of that object."""
    stops_since: float | None = None
    """Since when its object is held back again."""
    is_taken_off: bool = False
    """Whether it has no controller any more: what its Job's deletion left behind is a pod as anybody makes them."""


class Hands:
    """Objects that run by hand, and their pods, by UID: nobody else's exemption."""

    def __init__(self) -> None:
        self._roots: dict[str, LetGo] = {}
        self._pods: dict[str, Pod] = {}

    def __contains__(self, uid: str) -> bool:
        """Say whether what runs of this one object or pod need not be charged."""
        return uid in self._roots or uid in self._pods

    def __bool__(self) -> bool:
        """Say whether there is anything to look at."""
        return bool(self._roots or self._pods)

    def let_go(self, root: str, name: str) -> None:
        """Take that a person let an object go, admitted or not: it lacks what a lift adds, its labels first of all."""
        self._roots[root] = LetGo(name)

    def seen(self, root: str, *, managed: bool) -> None:
        """Take whether an object that runs by hand is still one of a queue."""
        if root in self._roots:
            self._roots[root].managed = managed

    def in_no_queue(self) -> set[str]:
        """Return the names of those that left their queue after they were let go, or were left behind: nobody minds."""
        left = {pod.name for pod in self._pods.values() if pod.is_taken_off}
        return left | {known.name for known in self._roots.values() if not known.managed}

    def made(self, root: str, pod: str) -> None:
        """Take that a pod was made for an object."""
        if root in self._roots:
            self._pods.setdefault(pod, Pod(root, self._roots[root].name))

    def taken_off(self, pod: str) -> None:
        """Take that a pod has no controller any more: it runs on as it likes."""
        if pod in self._pods:
            self._pods[pod].is_taken_off = True

    def gone(self, pod: str) -> None:
        """Take that a pod is over, or no more: as long as it is there it is exempt, also while no Workload names it."""
        self._pods.pop(pod, None)

    def put_back(self, root: str) -> None:
        """Take that an object is held back again, or over."""
        self._roots.pop(root, None)

    def look(self, now: float, *, able: bool, runs: Callable[[str], bool], unheard: Callable[[str], int]) -> None:
        """Raise TruthError for what nobody puts back who could, and for pods that do not stop; asked once a second.

        `unheard`: how many writes of an object, by its name, have got no answer in all.
        """
        for root, known in self._roots.items():
            lost = unheard(known.name)
            due = able and known.managed
            if not due or known.since is None:
                known.since, known.unheard = now if due else None, lost
            allowed = PUT_BACK_SECONDS_MAX + UNHEARD_SECONDS * max(0, lost - known.unheard - 1)
            if known.since is not None and now - known.since > allowed:
                text = f"a person let it go, and nobody has put it back for {now - known.since:.0f} s"
                raise TruthError(f"{known.name} ({root}): {text}")
        for uid, pod in self._pods.items():
            if pod.root in self._roots or pod.is_taken_off:
                pod.stops_since = None
                continue
            pod.stops_since = now if pod.stops_since is None else pod.stops_since
            if runs(uid) and now - pod.stops_since > STOP_SECONDS_MAX:
                raise TruthError(f"pod {uid} of {pod.root}, which was put back, runs for {now - pod.stops_since:.0f} s")
