"""Sees that the status of queues, cohorts and flavors is looked at, at most once per `status_every`.

Neighbours: `shown_queues` (when each was written), `works.intake` and `machine` (say what changed).
"""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.purposes import Purpose
from gatelift.core.state.core import Core
from gatelift_kube.values.resources import ObjectKey

STATUS_DELAY = 0.05
"""A queue's status waits this long, so that the events of one burst are one write."""


def queue(core: Core, key: Key) -> None:
    """See that the status of a queue is looked at."""
    if core.budget.stands(WriteAsk(key, Purpose.STATUS)):
        return  # it is looked at when its turn comes
    soon = core.now + STATUS_DELAY
    due = core.shown_queues.due(key, core.settings.status_every)
    core.agenda.wake(key, soon if due is None else max(due, soon))


def forget(core: Core, key: Key) -> None:
    """Keep nothing of a queue or cohort that is gone."""
    core.shown_queues.forget(key)
    for purpose in (Purpose.STATUS, Purpose.HOLD):
        core.budget.leave(WriteAsk(key, purpose))


def changed(core: Core) -> None:
    """See to the status of all queues that the engine counts otherwise than at the last call."""
    names, locals_ = core.ledger.engine.take_changed()
    for name in core.ledger.take_haunted():
        if name in core.knowledge.cluster_queues:
            queue(core, Key(Look.CLUSTER_QUEUE, ObjectKey("", name)))
    if names:
        leaving(core)
    for name in names:
        if name in core.knowledge.cluster_queues:
            queue(core, Key(Look.CLUSTER_QUEUE, ObjectKey("", name)))
            cohorts_above(core, name)
    for local in locals_:
        if local in core.knowledge.local_queues:
            queue(core, Key(Look.LOCAL_QUEUE, local))


def leaving(core: Core) -> None:
    """Look soon at the ResourceFlavors that are being deleted: what used one may not any more."""
    for key in core.shown_queues.leaving():
        core.agenda.wake(Key(Look.FLAVOR, key), core.now + STATUS_DELAY)


def everything(core: Core) -> None:
    """See to the status of all queues and cohorts: a flavor, check or quota changed."""
    for name in core.knowledge.cluster_queues:
        queue(core, Key(Look.CLUSTER_QUEUE, ObjectKey("", name)))
    for local in core.knowledge.local_queues:
        queue(core, Key(Look.LOCAL_QUEUE, local))
    for name in core.knowledge.cohorts if core.settings.admission.fair_sharing else ():
        queue(core, Key(Look.COHORT, ObjectKey("", name)))


def cohorts_above(core: Core, name: str) -> None:
    """See to the shares of the cohorts above a ClusterQueue, where fair sharing is on."""
    known = core.knowledge.cluster_queues.get(name)
    if known is not None and core.settings.admission.fair_sharing:
        for cohort in core.knowledge.cohorts_above(known.spec.cohort_name):
            queue(core, Key(Look.COHORT, ObjectKey("", cohort)))
