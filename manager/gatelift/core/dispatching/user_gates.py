"""Which gates of his own a user has left on what waits at a worker: there they go as he takes them off. Pure.

Of one object: as that changes, and once in each session. Of several: who came with such gates is known by what was
said of him in the session; a session that is not resumed brings all their specs anew (`placing`), and the agent
compares. Nothing is said of what was made without such gates: none can be added. Neighbour: `placing`.
"""

from __future__ import annotations

from collections.abc import Iterable

from gatelift.core.dispatching import several
from gatelift.core.records.attempt_states import UNLIFTED
from gatelift.core.records.work import Owner
from gatelift.core.state.case import Case
from gatelift_kube.objects.core import SchedulingGate
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_wire.values.single import SetUserGates


def tell(case: Case, owner: Owner) -> None:
    """Say which gates are left, where the cluster was told otherwise."""
    if case.attempt.cluster == LOCAL_CLUSTER:
        return  # its agent sees the user's own objects
    if case.work.gathered is not None:
        _of_several(case)
    else:
        _of_one(case, owner)


def travel(case: Case, uids: Iterable[str]) -> None:
    """Take that the specs of these have been sent, with the gates that each has."""
    told = case.attempt.told
    for uid in uids:
        found = several.named(case.core, case.work, told.members.get(uid, ""), uid)
        if found is not None:
            told.has_gates(uid, of(found))


def of(owner: Owner) -> tuple[str, ...]:
    """Return the scheduling gates of a user's pod that are not ours."""
    return _of_users(getattr(getattr(owner.object, "spec", None), "scheduling_gates", ()))


def _of_one(case: Case, owner: Owner) -> None:
    """Say it in each session: an agent that starts again has forgotten it, and another leader may have said it."""
    core, known, attempt = case.core, case.known, case.attempt
    if attempt.state not in UNLIFTED:
        return
    if not any(_of_users(pod_set.template.spec.scheduling_gates) for pod_set in known.spec.pod_sets):
        return
    gates = of(owner)
    if gates == attempt.gates_told and core.sessions.keeps(attempt.cluster, attempt.gates_session):
        return
    message = SetUserGates(key=attempt.key, name=owner.object.metadata.name, gates=gates)
    attempt.tell_gates(gates, core.send(attempt.cluster, (message,), case.now).session)


def _of_several(case: Case) -> None:
    """Say it of each that has such gates: the others run, so the state of the whole says nothing."""
    core, attempt = case.core, case.attempt
    for uid, told in tuple(attempt.told.gates.items()):
        found = several.named(core, case.work, attempt.told.members.get(uid, ""), uid)
        if found is None or (left := of(found)) == told:
            continue
        message = SetUserGates(key=attempt.key, name=found.object.metadata.name, gates=left)
        if core.send(attempt.cluster, (message,), case.now).session:
            attempt.told.has_gates(uid, left)


def _of_users(gates: tuple[SchedulingGate, ...]) -> tuple[str, ...]:
    return tuple(gate.name for gate in gates if not gate.name.startswith("kueue.x-k8s.io/"))
