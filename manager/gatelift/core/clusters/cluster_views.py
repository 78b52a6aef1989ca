"""How one worker cluster looks to dispatch and explain: its object, what is recorded, and what its agent has said.

Neighbours: `link_values.ClusterView` (what is seen), `conversation` (knows it, with the record), `link` (is asked).
"""

from __future__ import annotations

from gatelift.core.clusters import capacities, foreign_runs, identity
from gatelift.core.clusters.conversation import Conversation
from gatelift.core.clusters.link_values import ClusterView
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_wire.values.messages import DisconnectPolicy


class RememberedView:
    """One cluster's view, made anew only when that has changed of which it is made, which it does rarely."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._view: tuple[tuple[object, ...], ClusterView] | None = None

    def at(self, now: float) -> ClusterView:
        """Return what is to be seen now."""
        talk, record, facts = self._conversation, self._conversation.record, self._conversation.facts
        open_ = talk.sendable(now)
        # All that a view is made of, as it is kept: what follows from it costs more than it does to compare.
        recorded = (record.object, record.term, record.lost_session, record.comparison.proves_by, facts.doubted_by())
        said = (talk.hello, talk.capacity, talk.credits, talk.open_session, talk.suspect, talk.resynced, talk.version)
        of = (open_, recorded, said, facts.lost, facts.api_reachable, facts.replicas, facts.foreign, facts.left_out)
        if self._view is None or self._view[0] != of:
            self._view = (of, _made(talk, open_=open_))
        return self._view[1]


def _made(talk: Conversation, *, open_: bool) -> ClusterView:
    record, facts = talk.record, talk.facts
    found, hello, capacity = record.object or WorkerCluster(), talk.hello, talk.capacity
    policy = found.spec.disconnect_policy
    fenced_through, fenced_by = record.fenced()
    kept = "" if found.spec.cordoned or record.may_get_work(found) else identity.why_no_work(found)
    return ClusterView(
        name=talk.name,
        state=talk.state(),
        session=talk.open_session,
        open=open_,
        cordoned=found.spec.cordoned or bool(kept),
        why_cordoned=kept,
        draining=found.spec.drain,
        kinds=frozenset(hello.kinds if hello else ()),
        accepted_namespaces=frozenset(capacity.namespaces) if capacity else None,
        allowed_namespaces=found.spec.allowed_namespaces,
        capacity=capacities.by_resource(capacity.entries if capacity else ()),
        credits=talk.credits,
        adopts=hello.adopts if hello else False,
        version=talk.version,
        labels=tuple(sorted(found.metadata.labels.items())),
        weight=found.spec.weight,
        policy=DisconnectPolicy(policy) if policy in {each.value for each in DisconnectPolicy} else None,
        api_reachable=facts.api_reachable,
        replicas=facts.replicas,
        predecessors=found.status.predecessors,
        fenced_through=fenced_through,
        fenced_by=fenced_by,
        resynced_session=talk.resynced,
        unproven=record.comparison.unproven(facts),
        unproven_through=record.comparison.unproven_through(facts),
        vouching=record.vouching,
        foreign=foreign_runs.awaited(found, facts.foreign),
        left_out=bool(facts.left_out),
    )
