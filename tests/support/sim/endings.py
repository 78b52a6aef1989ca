"""What has to be when all is calm again: everything finished or running where its record says, and later nothing left.

Asked of a world, of the outside check, and at the very end of the cores, which then must remember nothing. Neighbours:
`world` asks, `truth` knows what may run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from support.sim.account import taken_off
from support.sim.objects import holds, is_over, names, wanted
from support.sim.standing import group_of, is_finished, is_kept, may_stand, sized_otherwise, waiting

if TYPE_CHECKING:
    from support.sim.cluster import Doc
    from support.sim.world import SimWorld


KEPT_SECONDS = 900.0
"""What workers keep for so long is still there when users delete everything; where that cannot be told it goes before
the world is given up (`world.CALM_SECONDS_MAX`)."""
REPORT = "gatelift.dev/report"


def unsettled(world: SimWorld) -> list[str]:
    """Return what is neither finished nor running where its record says."""
    problems = []
    live, used = world.truth.all_live(), world.truth.used()
    for uid, document in world.truth.workloads.items():
        name = document["metadata"]["name"]
        whose = world.truth.whose
        if whose.record_of(whose.chain_of(uid)) != uid:
            continue  # a slice that is past, or waits to grow what runs
        if holds(document, "Finished"):
            if live.get(whose.chain_of(uid)):
                problems.append(f"{name} is finished and runs: {live[whose.chain_of(uid)]}")
        elif not live.get(whose.chain_of(uid)):
            reserved, queue = holds(document, "QuotaReserved"), document["spec"].get("queueName", "")
            if may_stand(world, name):
                continue
            if not reserved and wanted(document) > world.queues.get(queue, 0) - used[queue]:
                continue  # it waits for others, which run
            problems.append(f"{name} waits (reserved {reserved}, {document.get('status', {}).get('clusterName')})")
        else:
            problems += waiting(world, name)
    owned = {own for uid in world.truth.workloads for own in world.truth.whose.owners_of(uid)}
    problems += [
        f"{resource.kind} {each['metadata']['name']} has no workload"
        for resource in (POD, JOB)
        for each in world.home.views(resource)
        if "kueue.x-k8s.io/queue-name" in each["metadata"].get("labels", {})
        and each["metadata"]["uid"] not in owned
        and not is_over(each)
        and not (may_stand(world, group_of(each)) or is_finished(world, group_of(each)))
    ]
    in_no_queue = world.truth.hands.in_no_queue()
    problems += [
        f"{work} runs, and nobody granted it, since {since}"
        for work, since in world.account.ghosts().items()
        if str(work) not in in_no_queue
    ]
    problems += sized_otherwise(world)
    return [*problems, *strays(world, live, may_be_kept=world.keep.failed_seconds >= KEPT_SECONDS)]


def strays(world: SimWorld, live: dict[str, Any], *, may_be_kept: bool = False) -> list[str]:
    """Return objects on workers that belong to no workload that runs there.

    `may_be_kept`: not those of one that is finished, which are over and bear no finalizer of ours.
    """
    problems = []
    for name, worker in world.workers.items():
        if worker.name in world.lost_for_good:
            continue
        for resource in (POD, JOB):
            for each in worker.views(resource):
                belongs = world.truth.whose.of(worker.name, each["metadata"]["uid"])
                if belongs is None:
                    continue  # a tenant's own
                if is_over(each) and taken_off(each, belongs):
                    continue  # who takes a pod off its Job keeps it, once it has ended
                if is_kept(world, each, belongs):
                    continue
                if may_be_kept and _is_kept(world, each, belongs.workload):
                    continue
                if not any(cluster == worker.name for _, cluster in live.get(belongs.workload, ())):
                    text = f"{resource.kind} {each['metadata']['name']} of {belongs.workload} is left on {name}"
                    problems.append(text)
    return problems


def _is_kept(world: SimWorld, document: Doc, workload: str) -> bool:
    record = world.truth.record(workload)
    finished = record is not None and holds(record, "Finished")
    return finished and is_over(document) and REPORT not in document["metadata"].get("finalizers", [])


def left_over(world: SimWorld) -> list[str]:
    """Return what is left after everything was deleted."""
    left = [
        f"{resource.kind}s at home: {names(world.home.views(resource))}"
        for resource in (POD, JOB, WORKLOAD)
        if world.home.views(resource)
    ]
    left += [f"{uid} runs: {live}" for uid, live in world.truth.all_live().items()]
    left += strays(world, {})
    for manager in world.managers:
        core = manager.machine.core
        if not core.stepped_down and manager.elector.leads() and (core.attempts or core.ledger.charges):
            left.append(f"{manager.name} remembers {sorted(core.attempts)} charges {sorted(core.ledger.charges)}")
    for name in world.names:
        for agent in world.alive(name):
            if agent.machine.world.ready and agent.machine.world.placements:
                left.append(f"{agent.name} remembers {[str(key) for key in agent.machine.world.placements]}")
    return left
