"""Where a group may stand when all is calm: it runs, waits for quota, or for pods that its user does not make.

Asked of a world by `endings`; what users are like is said by `crews`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatelift_kube.values.resources import WORKLOAD
from support.sim.attribution import GROUP, GROUPED, QUEUE, Belongs, Work
from support.sim.cluster import TEAM, Doc
from support.sim.objects import holds, is_over
from support.sim.surplus import is_present

if TYPE_CHECKING:
    from support.sim.world import SimWorld


def group_of(pod: Doc) -> str:
    """Return the name of the group that a pod says it is of, "" for none."""
    return str(pod["metadata"].get("labels", {}).get(GROUP, ""))


def may_stand(world: SimWorld, group: str) -> bool:
    """Say whether nothing of a group need run: pods lack, and its user makes none; or somebody moved one elsewhere."""
    crew = world.crews.by_name.get(group) if world.crews is not None else None
    if world.crews is not None and crew is not None and _disagrees(world.crews.pods(crew)):
        return True
    if world.crews is None or crew is None or not world.crews.lacking(crew):
        return False
    return not crew.diligent or world.crews.is_over(crew)


def _disagrees(pods: list[Doc]) -> bool:
    """Say whether pods of a group name different queues, of those that are neither over nor going: no Workload is."""
    there = [each for each in pods if is_present(each) and not is_over(each)]
    return len({each["metadata"].get("labels", {}).get(QUEUE) for each in there}) > 1


def is_finished(world: SimWorld, group: str) -> bool:
    """Say whether a group has come to its end: who comes later stands at its gate."""
    found = world.home.look(WORKLOAD, group)
    if found is not None and holds(found, "Finished"):
        return True
    crew = world.crews.by_name.get(group) if world.crews is not None else None
    if world.crews is None or crew is None:
        return False
    succeeded = [one for one in world.crews.pods(crew) if one.get("status", {}).get("phase") == "Succeeded"]
    return len(succeeded) >= crew.total or world.crews.is_over(crew)


def waiting(world: SimWorld, group: str) -> list[str]:
    """Return what is wrong with a group that has quota and a cluster: pods that are there, and are not let go."""
    crew = world.crews.by_name.get(group) if world.crews is not None else None
    if world.crews is None or crew is None:
        return []
    live = {each.user for _, each in world.truth.by_uid(Work(GROUPED, TEAM, group))}
    there = [each for each in world.crews.pods(crew) if is_present(each) and not is_over(each)]
    names = [each["metadata"]["name"] for each in there if each["metadata"]["uid"] not in live]
    return [f"{', '.join(names)} of {group} wait, and the others run"] if names else []


def sized_otherwise(world: SimWorld) -> list[str]:
    """Return what is wrong with the size of elastic Jobs that run: not what is wanted, and no slice waits for quota.

    Not of a Job that its user has made again past the webhook: it has no gate, so it is as any (decision 107).
    """
    problems = []
    for job in world.resizers.elastic_jobs() if world.resizers is not None else ():
        name, wanted = job["metadata"]["name"], job["spec"].get("parallelism", 1)
        record = world.truth.record(world.truth.whose.chain_of(world.truth.whose.workload_of(job["metadata"]["uid"])))
        if record is None or is_over(job) or not holds(record, "QuotaReserved") or holds(record, "Finished"):
            continue
        has = sum(each["count"] for each in record["status"]["admission"]["podSetAssignments"])
        behind = [each for each in _slices_behind(world, record) if not holds(each, "QuotaReserved")]
        if has > wanted or (has < wanted and [_count(each) for each in behind] != [wanted]):
            problems.append(
                f"{name} wants {wanted} pods and has {has}; behind it wait {[_count(each) for each in behind]}"
            )
    return problems


def _slices_behind(world: SimWorld, record: Doc) -> list[Doc]:
    whose, uid = world.truth.whose, record["metadata"]["uid"]
    of_chain = [each for own, each in world.truth.workloads.items() if whose.chain_of(own) == whose.chain_of(uid)]
    return [each for each in of_chain if each["metadata"]["uid"] != uid and not holds(each, "Finished")]


def _count(workload: Doc) -> int:
    return int(workload["spec"]["podSets"][0]["count"])


def is_kept(world: SimWorld, document: Doc, belongs: Belongs) -> bool:
    """Say whether a pod of a group is over at a worker while its group goes on: it stays until that ends."""
    record = world.truth.record(belongs.workload)
    goes_on = record is not None and not holds(record, "Finished")
    return goes_on and belongs.work.kind == GROUPED and is_over(document)
