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


def is_kept(world: SimWorld, document: Doc, belongs: Belongs) -> bool:
    """Say whether a pod of a group is over at a worker while its group goes on: it stays until that ends."""
    record = world.truth.record(belongs.workload)
    goes_on = record is not None and not holds(record, "Finished")
    return goes_on and belongs.work.kind == GROUPED and is_over(document)
