"""The passes over what is to be looked at, one key at a time: each by itself, and an exception belongs to its key.

What is known by half is not looked at, but stopped where that is asked for. Neighbours: `machine` owns this,
`reconcile` is the pass over Workloads, `gathered` over users' objects, `obeying` stops what is set aside.
"""

from __future__ import annotations

from collections.abc import Callable

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.commands import Note
from gatelift.core.api.events import BreakOff
from gatelift.core.conclusions import recovery_findings, strays
from gatelift.core.dispatching import obeying, placing, waking
from gatelift.core.rules import checks, containment, in_use
from gatelift.core.rules.containment import Boundary
from gatelift.core.state import word_writes
from gatelift.core.state.api_requests import UNSENT, UNSENT_AT_ONCE, UNSENT_SECONDS
from gatelift.core.state.core import Core
from gatelift.core.works import answers, gathered, reconcile, taking
from gatelift_kube.deciding.writes import (
    Create,
    Delete,
    EmitEvent,
    Patch,
    WriteError,
    WriteFailed,
)
from gatelift_kube.values.resources import ObjectKey, ObjectRef

_SAY_THEMSELVES = frozenset({Look.UNDECIDED, Look.UNTAKEN, Look.UNCOMPARED})
"""Looks that come to their end though it did not go well: that is seen as it is decided on, or taken."""
_OF_ALL = frozenset({Look.WORK, Look.WORKLOAD})
"""Looks at all of several objects, where there are several: they are paced."""
LATE_PER_CALL = 4
"""Keys of the late line in one call: what comes in meanwhile is taken before the next ones."""
HELD_SECONDS = 60.0
"""After so long it is looked whether what nobody looks at is to be stopped: it is the time that runs out of some."""
READ_AT_LAST = "a record could be read at last: what was said of its placement until then is to be said again"
COMPARED_ANEW = "not all that is here could be compared with the record: greet anew"
NOT_ENDED = "the look that asked for it came to no end"


def _cluster_changed(core: Core, key: ObjectKey, now: float) -> None:
    placing.pay(core, key.name, now)
    recovery_findings.look(core, key.name, now)
    if core.contained.resting:
        core.placements.note(key.name)  # it is counted again, should that have failed
    checks.mark_checks(core)


_PASSES: dict[Look, Callable[[Core, ObjectKey, float], None]] = {
    Look.WORKLOAD: reconcile.workload,
    Look.WORK: gathered.reconcile,
    Look.CHECK: checks.check,
    Look.CLUSTER_QUEUE: checks.cluster_queue,
    Look.LOCAL_QUEUE: checks.local_queue,
    Look.COHORT: checks.cohort,
    Look.FLAVOR: in_use.flavor,
    Look.CLUSTER: _cluster_changed,
    Look.WAKING: waking.go_on,
    Look.WORDS: word_writes.call,
    Look.DOUBTS: strays.look,
    Look.UNDECIDED: containment.decide_again,
}


class Passes:
    """Goes through the agenda. `pass_on` hands an event to the links."""

    __slots__ = ("_core", "_pass_on")

    def __init__(self, core: Core, pass_on: taking.PassOn) -> None:
        self._core, self._pass_on = core, pass_on

    def drain(self, budget: int, now: float) -> int:
        """Look at so many dirty keys; return how many more might have been looked at."""
        core, late = self._core, LATE_PER_CALL
        while budget and not core.stands_still:
            key = core.agenda.take(late=late > 0)
            if key is None:
                break
            budget -= 1
            late -= core.agenda.was_late
            self._look(key, now)
        return budget

    def _look(self, key: Key, now: float) -> None:
        """Look at a key; an exception belongs to what it names."""
        core = self._core
        if key.look is Look.DECIDING:
            containment.tell_doubts(core, now)
            return  # it rang: what is due is decided behind this
        if (core.untaken or core.caution.uncompared) and containment.is_held(core, key):
            self._hold(key, now)
            return
        rests = core.contained.rests_until(key, now) if core.contained.resting else 0.0
        if rests:
            core.agenda.wake(key, rests)
            return
        begun = len(core.commands)
        try:  # as `Boundary` does, which is three calls more for the most frequent of all
            if key.look in _OF_ALL and (work := core.knowledge.works.gathered_at(key.object)) is not None:
                core.pacing.looked(key, len(work.objects), now)
            self._pass(key, now)
            aside = containment.is_set_aside(core, key) if core.caution.set_aside else None
            if key.look not in _SAY_THEMSELVES:
                containment.pass_done(core, key)
            if aside is not None and aside.live:
                self._pass_on(BreakOff(cluster=aside.cluster, text=READ_AT_LAST), now)
        except Exception as error:  # noqa: BLE001 (containment: it belongs to this key)
            self._look_failed(key, begun, error, now)

    def _look_failed(self, key: Key, begun: int, error: Exception, now: float) -> None:
        """Drop what a look that came to no end has asked for, set its key aside, and stop what is to be stopped."""
        core = self._core
        for command in core.take_commands(begun):
            if isinstance(command, Create | Patch | Delete) and not core.links.owns_write(command.write_id):
                not_sent = WriteFailed(write_id=command.write_id, error=WriteError.NOT_SENT, message=NOT_ENDED)
                answers.written(core, not_sent, now)
            elif not isinstance(command, EmitEvent | Note):
                core.command(command)  # frames have their number in a session, and reads change nothing
        containment.pass_failed(core, key, error, now)
        self._obey(key, now)

    def _hold(self, key: Key, now: float) -> None:
        """Do nothing for what is known by half but to stop it; it is looked at as soon as it could be taken."""
        self._core.agenda.wake(key, now + HELD_SECONDS)
        self._obey(key, now)

    def _obey(self, key: Key, now: float) -> None:
        """Stop what is to be stopped of what is set aside."""
        if key.look is Look.WORKLOAD:
            with Boundary(containment.stop_failed, self._core, key, now=now):
                obeying.stop_if_asked(self._core, key.object, now)

    def _pass(self, key: Key, now: float) -> None:
        if key.look is Look.UNTAKEN and key.resource is not None:
            taking.take_again(self._core, ObjectRef(key.resource, key.object), now, self._pass_on)
        elif key.resource is not None:
            gathered.look_at_object(self._core, ObjectRef(key.resource, key.object), now)
        elif key.look is Look.UNCOMPARED:
            for cluster in containment.compare_again(self._core, key.object, now):
                self._pass_on(BreakOff(cluster=cluster, text=COMPARED_ANEW), now)
        elif key.look is Look.INFORM:
            self._core.call_to_inform(now)
        elif key.look is Look.UNSENT:
            self._look_at_unsent(now)
        else:
            _PASSES[key.look](self._core, key.object, now)

    def _look_at_unsent(self, now: float) -> None:
        """Decide anew on the objects whose turn it is, of those whose write found none."""
        core = self._core
        for ref in core.unsent.next(UNSENT_AT_ONCE):
            taking.look_at(core, ref, now)
        if core.unsent:
            core.agenda.wake(UNSENT, now + UNSENT_SECONDS)
