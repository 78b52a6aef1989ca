"""Which cluster is this: whether who greets under a name is who was placed on, and remembers all of it. Pure.

Absence from an inventory proves that something is gone only if the agent would know of it (rule R4). It would not if
another cluster was enrolled under the name, if the worker (its etcd, or the agent's own objects) is older than what is
recorded of it, or if another agent, with a Lease of its own, served the cluster before. All are *in doubt*: what its
inventory does not list stays charged, nothing new is placed, until a person says what became of the former work, or
until nothing is charged there that it does not list. Neighbours: `cluster_record` (writes it), `cluster_facts` (the
fields).
"""

from __future__ import annotations

import enum
from typing import Any

from gatelift.core.clusters.cluster_facts import Facts
from gatelift.core.clusters.link_values import Vouching
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster, WorkerClusterStatus
from gatelift_kube.values.numbers import whole
from gatelift_wire.values.messages import Hello

SESSION_JUMP_MAX = 2**32
"""How far above the recorded session an agent's last one may lie. A WorkerCluster that was made anew begins with 0, and
its agent may have had a session a second for 136 years; who says more would use up numbers, which have 18 digits."""

ANNOTATION_RESTORED_ACCEPTED = "gatelift.dev/restored-accepted"
"""A person's word, written by `gatelift cluster cordon NAME --off`: who was found restored, or another cluster, in this
session may get work."""


class Doubt(enum.Enum):
    """Why an inventory proves nothing by absence."""

    REPLACED = "another cluster"
    RESTORED = "older than what is recorded"
    TAKEN_OVER = "another agent of the same cluster"


def doubt_of(found: WorkerCluster, facts: Facts, hello: Hello) -> Doubt | None:
    """Compare a greeting with what is recorded; `facts` may know a later mark than what is written already.

    A first UID or Lease is no doubt. An agent that does not say which cluster it serves, or by which Lease it leads,
    where that is recorded, may be another.
    """
    status = found.status
    if status.cluster_uid and hello.cluster_uid != status.cluster_uid:
        return Doubt.REPLACED
    if status.agent_lease and hello.lease != status.agent_lease:
        return Doubt.TAKEN_OVER  # and what another Lease counts cannot be compared
    if hello.mark < max(facts.mark, status.mark):
        return Doubt.RESTORED
    opened = max(facts.opened_session, status.opened_session)
    if hello.instance != status.agent_instance and hello.last_session < opened:
        return Doubt.RESTORED  # the same process cannot have forgotten
    return None


FIELDS = {
    Doubt.REPLACED: "replaced_session",
    Doubt.RESTORED: "restored_session",
    Doubt.TAKEN_OVER: "taken_over_session",
}
"""Where the session stands in which each was found last."""


def recorded(found: WorkerCluster, facts: Facts, hello: Hello, session: int) -> dict[str, Any]:
    """Return what a session's write says of who greets.

    Compared with the object that the write is conditional on, which may be newer than what was known at the
    greeting. What was placed before needs no doubt where a person has said that nothing of it runs any more.
    """
    changes: dict[str, Any] = {
        "cluster_uid": hello.cluster_uid or facts.cluster_uid,
        "agent_lease": hello.lease or facts.agent_lease,
    }
    doubt = None if found.metadata.name == LOCAL_CLUSTER else doubt_of(found, facts, hello)
    if doubt is None:
        return changes
    changes["mark"] = hello.mark  # it counts from there on
    changes[FIELDS[doubt]] = session
    if found.status.fenced_through_session >= found.status.session > 0:
        changes["settled_session"] = session
    return changes


def latest_doubt(said: Facts | WorkerClusterStatus) -> int:
    """Return the session in which the latest doubt arose, settled or not, 0 for none."""
    return max(said.restored_session, said.replaced_session, said.taken_over_session)


def doubted_in(said: Facts | WorkerClusterStatus) -> int:
    """Return the session in which a doubt arose that nobody has settled yet, 0 when there is none."""
    latest = latest_doubt(said)
    return latest if latest > said.settled_session else 0


def number_in(found: WorkerCluster, annotation: str) -> int:
    """Return the session number that a person has written into an annotation, 0 where there is none."""
    return whole(found.metadata.annotations.get(annotation, "")) or 0


def awaits_person(found: WorkerCluster, doubted_session: int) -> bool:
    """Say whether who serves the cluster is in doubt, and nobody has said yet that it may get work all the same."""
    return doubted_session > number_in(found, ANNOTATION_RESTORED_ACCEPTED)


def why_no_work(found: WorkerCluster) -> str:
    """Return why nothing new is placed on a cluster that nobody has cordoned."""
    if not found.status.opened_session:
        return "taken in anew, and not yet heard in a session that is recorded"
    return (
        f"who serves it is in doubt: see gatelift cluster list, and gatelift cluster cordon {found.metadata.name} --off"
    )


def vouching(said: Facts | WorkerClusterStatus) -> Vouching:
    """Return who can tell what was placed in a cluster and a restored record may have lost (H19).

    A doubt counts also where it is settled: that nothing was missing says nothing of what the record has lost. So does
    no word of before the restore was found: the cluster may have come back after it, in what was lost.
    """
    through = max(latest_doubt(said) - 1, 0)
    return Vouching(
        doubted_through=through,
        served_by=(said.cluster_uid, said.agent_lease),
        fenced_after=said.fenced_after,
        fenced_after_through=said.fenced_after_through,
    )


def too_high(hello: Hello, recorded: int) -> str:
    """Return why a greeting is refused for the session that it names, "" when it is not."""
    if hello.last_session - recorded <= SESSION_JUMP_MAX:
        return ""
    return (
        f"Hello.last_session: must be at most {SESSION_JUMP_MAX} above the recorded {recorded}, is "
        f"{hello.last_session}; delete the agent's ConfigMap gatelift-agent-state if that is what it holds"
    )
