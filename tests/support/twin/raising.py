"""Plays short lives of one workload among others on the engine, while one function raises for it: what is left of that.

`play` without a function to raise in counts which functions are entered with the workload (its entry or its object);
each of those calls can be made to raise, once or as long as it lasts.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from msgspec.structs import replace

import gatelift_admission
from gatelift_admission.engine import Engine
from gatelift_admission.entries.entry import Entry
from gatelift_admission.values.model import (
    CycleResult,
    Decision,
    EngineSettings,
    Evict,
    Inadmissible,
    Preempt,
    Reserve,
    Unreserve,
)
from gatelift_kube.objects.kueue import Admission, PodSetAssignment, Workload, WorkloadStatus
from gatelift_kube.objects.meta import Condition
from support.on_purpose import OnPurposeError
from support.twin.admission_objects import cluster_queue, flavor, group, local_queue, pod_set, reserved_status, workload
from support.twin.cohort_engine import COHORT, POLICY

PACKAGE = str(Path(gatelift_admission.__file__).parent)
SHORT = ("feed/faults.py", "engine.py")
"""What catches, and the door itself: an exception of these goes out to the caller, who says the same again."""
CALLS_MAX = 300
ASKED_MAX = 2
GENERATOR = 0x20
Place = tuple[str, str]
"""A file of the engine and a function in it."""


def is_about(value: Any, uid: str) -> bool:
    """Say whether a value is the entry or the Workload of that UID."""
    if isinstance(value, Entry):
        return getattr(value, "uid", "") == uid  # it has none as it is made
    return isinstance(value, Workload) and value.metadata.uid == uid


class Raising:
    """Counts the calls of functions that are about one workload, and raises at one call of one of them."""

    def __init__(self, uid: str, at: Place | None = None, call: int = 0) -> None:
        self.uid, self.at, self.call = uid, at, call
        self.calls: Counter[Place] = Counter()
        self.raised = False

    def seen(self, frame: FrameType, event: str, _: Any) -> None:
        """Take that a function is entered."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE) or code.co_flags & GENERATOR:
            return
        place = code.co_filename.removeprefix(PACKAGE + "/"), code.co_qualname
        if (self.at is not None and place != self.at) or "<" in code.co_name:
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if not any(is_about(frame.f_locals.get(name), self.uid) for name in names):
            return
        self.calls[place] += 1
        if self.at is not None and self.calls[place] == self.call and not self.raised:
            self.raised = True
            raise OnPurposeError("on purpose")

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Look at what is called meanwhile, until something raises."""
        before = sys.getprofile()
        if not self.raised:
            sys.setprofile(self.seen)
        try:
            yield
        finally:
            sys.setprofile(before)


@contextmanager
def broken(uid: str, place: Place) -> Iterator[None]:
    """Let a function of the engine raise for one workload, as long as it lasts."""
    file, name = place
    module = sys.modules[f"{gatelift_admission.__name__}.{file.removesuffix('.py').replace('/', '.')}"]
    owner, _, plain = name.rpartition(".")
    real = getattr(getattr(module, owner) if owner else module, plain)

    def faulty(*about: Any, **named: Any) -> Any:
        if any(is_about(one, uid) for one in (*about, *named.values())):
            raise OnPurposeError("on purpose")
        return real(*about, **named)

    engine = [one for key, one in sys.modules.items() if key.startswith(gatelift_admission.__name__)]
    homes: list[Any] = [getattr(module, owner)] if owner else [one for one in engine if getattr(one, plain, 0) is real]
    with pytest.MonkeyPatch.context() as patch:
        for home in homes:
            patch.setattr(home, plain, faulty)
        yield


class Caller:
    """Feeds, takes decisions over as a manager would, and looks again at what was set aside."""

    def __init__(self, raising: Raising | None = None) -> None:
        """Take what raises once; what raises for ever (`broken`) is looked at again once a step."""
        self.engine, self.raising = Engine(EngineSettings(preemption_patience=0.0, wake_period=0.0)), raising
        self.now = 0.0
        self.objects: dict[str, Workload] = {}
        self.decided: Counter[tuple[str, str]] = Counter()
        self.aside: list[str] = []
        """UIDs that were told as faults, in order."""
        self.outside: list[str] = []
        """Doors through which an exception has gone out."""
        self.problems: list[str] = []

    def ask(self, name: str, *about: Any, **named: Any) -> Any:
        """Call a method of the engine; one that raises is called again, as a caller would in a moment."""
        for _ in range(ASKED_MAX):
            try:
                with self.raising.armed() if self.raising is not None else nullcontext():
                    return getattr(self.engine, name)(*about, **named)
            except OnPurposeError:
                self.outside.append(name)
        raise AssertionError(f"{name} raises again and again")

    def write(self, uid: str, status: WorkloadStatus | None = None, **spec: Any) -> None:
        """Change an object and let it come in."""
        known = self.objects[uid]
        meta = replace(known.metadata, resource_version=str(int(known.metadata.resource_version) + 1))
        new = replace(known, metadata=meta, status=status or known.status, spec=replace(known.spec, **spec))
        self.objects[uid] = new
        self.ask("workload_changed", new, self.now)
        self._is_charged(uid)

    def create(self, uid: str, cpu: int, priority: int = 0, status: WorkloadStatus | None = None) -> None:
        """Let a workload arrive in the queue that its name begins with."""
        queue = uid.split("-", maxsplit=1)[0]
        asked = pod_set(requests={"cpu": cpu}, count=2)
        created = len(self.objects)
        self.objects[uid] = workload(uid, asked, queue=queue, priority=priority, created=created, status=status)
        self.ask("workload_changed", self.objects[uid], self.now)
        self._is_charged(uid)

    def remove(self, uid: str) -> None:
        """Let the end of an object come in."""
        del self.objects[uid]
        self.ask("workload_removed", uid)

    def _is_charged(self, uid: str) -> None:
        """Note where nothing is charged though a record says that something is reserved, whatever raised."""
        status = self.objects[uid].status
        true = {one.type for one in status.conditions if one.status == "True"}
        reserved = "QuotaReserved" in true and "Finished" not in true
        if reserved and not self.engine.charged(uid):
            self.problems.append(f"{uid} is charged nothing at {self.now}")

    def rest(self) -> None:
        """Cycle until nothing is left to decide; what was set aside is looked at again, once in a while."""
        self.now += 1.0
        looked: set[str] = set()
        for _ in range(CALLS_MAX):
            result: CycleResult = self.ask("cycle", self.now, 3)
            for one in result.decisions:
                self._take(one)
            for fault in result.faults:
                self.aside.append(fault.uid)
                if fault.uid in self.objects:
                    self._is_charged(fault.uid)
                    if fault.uid not in looked or self.raising is not None:
                        looked.add(fault.uid)
                        self.ask("look_again", fault.uid)
            if not result.more and not self.engine.is_due(self.now):
                return
        self.problems.append(f"no rest at {self.now}")

    def _take(self, decision: Decision) -> None:
        if not isinstance(decision, Inadmissible):  # texts follow who was looked at when
            self.decided[type(decision).__name__, decision.uid] += 1
        if isinstance(decision, Reserve):
            self.write(decision.uid, reserved_status(decision.admission, admitted=False))
        elif isinstance(decision, Preempt | Evict | Unreserve):
            self.stops(decision.uid)

    def stops(self, uid: str) -> None:
        """Let a workload be evicted, and what it held be given back."""
        status = self.objects[uid].status
        self.write(uid, replace(status, conditions=(*status.conditions, Condition("Evicted", "True", "Preempted"))))
        self.write(uid, WorkloadStatus(conditions=(Condition("QuotaReserved", "False", "Pending", "stopped"),)))

    def admit(self, uid: str) -> None:
        """Let a workload that has quota be admitted."""
        admission = self.objects[uid].status.admission
        assert admission is not None
        self.write(uid, reserved_status(admission))

    def figures(self) -> dict[str, Any]:
        """Return all that people see of queues and charges."""
        engine = self.engine
        shown: dict[str, Any] = {f"queue {name}": engine.cluster_queue_status(name) for name in ("a", "b")}
        for key in sorted(engine.state.local_queues):
            shown[f"local {key}"] = engine.local_queue_status(key)
        for uid in sorted(self.objects):
            shown[uid] = engine.phase(uid), engine.charged(uid), engine.charged_queue(uid)
        shown["known"] = sorted(engine.state.entries)
        return shown


def begin(raising: Raising | None = None) -> Caller:
    """Return a caller whose engine knows two queues of a cohort, of 8 CPUs each."""
    caller = Caller(raising)
    caller.ask("namespace_changed", "ns", {})
    caller.ask("flavor_changed", flavor("default"))
    for name in ("a", "b"):
        quota = group(default={"cpu": "8"})
        caller.ask("cluster_queue_changed", cluster_queue(name, quota, cohort_name=COHORT, preemption=POLICY))
        caller.ask("local_queue_changed", local_queue(name, name))
    return caller


def lives(caller: Caller) -> Iterator[None]:
    """Let it wait, have quota, give some back, go, come back elsewhere, run beside its record, and end."""
    caller.create("a-bad", 2)
    caller.create("b-one", 2)
    caller.rest()
    yield
    caller.admit("a-bad")
    caller.admit("b-one")
    caller.rest()
    yield
    caller.create("a-high", 3, priority=5)
    caller.create("b-high", 3, priority=5)
    caller.rest()
    yield
    caller.create("a-more", 1)
    caller.rest()
    yield
    caller.remove("a-high")
    caller.rest()
    yield
    caller.ask("set_usage", "a-bad", {"main": 1})
    caller.rest()
    yield
    caller.ask("release", "b-high", caller.now)
    caller.write("b-high", WorkloadStatus(conditions=(Condition("Finished", "True", "Succeeded"),)))
    caller.rest()
    yield
    caller.write("a-bad", replace(caller.objects["a-bad"].status, conditions=()), queue_name="b")
    caller.rest()
    yield
    caller.ask("block", "a-bad")
    caller.rest()
    caller.ask("unblock", "a-bad")
    caller.rest()
    yield
    caller.ask("set_ghost", "a-bad", runs=True, queue="a")
    caller.rest()
    yield
    caller.ask("set_ghost", "a-bad", runs=False)
    caller.rest()
    yield
    caller.write("a-bad", WorkloadStatus(conditions=(Condition("Finished", "True", "Succeeded"),)))
    caller.rest()
    yield
    caller.remove("a-bad")
    caller.rest()
    yield


def leads(caller: Caller) -> Iterator[None]:
    """Feed what runs to a new leader; then others arrive, its LocalQueue stops and goes on, and it is stopped."""
    held = PodSetAssignment("main", {"cpu": "default"}, {"cpu": "6"}, 2)
    caller.create("a-bad", 3, status=reserved_status(Admission("a", (held,))))
    caller.create("a-next", 2)
    caller.create("a-last", 2)
    caller.rest()
    yield
    caller.ask("cluster_queue_removed", "b")
    caller.rest()
    caller.ask("local_queue_changed", local_queue("a", "a", stop="Hold"))
    caller.rest()
    yield
    caller.ask("local_queue_changed", local_queue("a", "a"))
    caller.rest()
    yield
    caller.write("a-bad", active=False)
    caller.rest()
    yield
    caller.remove("a-bad")
    caller.rest()
    yield


def play(
    history: Callable[[Caller], Iterator[None]], raising: Raising | None = None
) -> tuple[Caller, list[dict[str, Any]]]:
    """Play a history; returns its caller and what was shown after each step."""
    caller = begin(raising)
    shown = [caller.figures() for _ in history(caller)]
    return caller, shown
