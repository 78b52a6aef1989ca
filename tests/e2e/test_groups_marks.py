"""What a tenant writes on the objects of a group that runs, on real API servers: by webhook and policies, and around.

HD-420, HD-421, HD-422, HD-424: each mark by which it is read what a pod or a Workload is to a group. HD-480, HD-482:
what a driver declares.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kube.values.resources import WORKLOAD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.admission import manager_with
from support.e2e.groups import PLACES, Group, K, placed_at
from support.e2e.rules import GATELIFT
from support.e2e.sandbox_kubectl import Kubectl, KubectlError
from support.e2e.world import MODULE_SECONDS, NAMESPACE, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]
LONG = Behaviour(run_seconds=3600)
AROUND = {
    what: (f"--as=system:serviceaccount:gatelift-system:gatelift-{who}", *GATELIFT, "--as-group=system:masters")
    for what, who in (("pod", "agent"), ("workload", "manager"))
}
"""Who is let through by webhook and policies: what they hold off has to be seen without them as well."""


def note(key: str, value: str | None) -> Json:
    return {"annotations": {f"{K}{key}": value}}


def label(key: str, value: str | None) -> Json:
    return {"labels": {f"{K}{key}": value}}


REFUSED: list[tuple[str, Json, str]] = [
    ("workload", note("is-group-workload", None), r"is-group-workload\]: .*leave it to Gatelift"),
    ("workload", note("is-group-workload", "false"), r"is-group-workload\]: .*leave it to Gatelift"),
    ("workload", {"annotations": {"gatelift.dev/owner": None}}, r"gatelift.dev/owner\]: .*leave it to Gatelift"),
    ("pod", label("podset", "other"), r"podset\]: .*is immutable, .*: make a new pod"),
    ("pod", label("podset", None), r"podset\]: .*is immutable, .*: make a new pod"),
    ("pod", label("pod-group-name", "other"), r"pod-group-name\]: .*is immutable once set: make a new pod"),
    ("pod", label("pod-group-name", None), r"pod-group-name\]: .*is immutable once set: make a new pod"),
    ("pod", note("pod-group-name", "other"), r"pod-group-name\]: .*is immutable once set: make a new pod"),
    ("pod", note("pod-group-total-count", "2"), r"pod-group-total-count\]: .*: make a new group"),
    ("pod", note("pod-group-total-count", None), r"pod-group-total-count\]: "),
    ("pod", note("role-hash", "other"), r"role-hash\]: .*is immutable, .*: make a new pod"),
    ("pod", note("role-hash", None), r"role-hash\]: .*is immutable, .*: make a new pod"),
    ("pod", note("pod-group-fast-admission", "true"), r"pod-group-fast-admission\]: .*: make a new group"),
    ("pod", note("pod-group-serving", "true"), r"pod-group-serving\]: .*: make a new group"),
    ("pod", label("managed", None), r"kueue.x-k8s.io/managed\]: "),
]
"""Of what, the change, and the line that a person reads: field, rule, way out."""
ALL: list[tuple[str, Json]] = [
    *[(what, change) for what, change, _ in REFUSED],
    ("pod", note("pod-group-sets", "nonsense")),
    ("pod", label("pod-group-role", "other")),
    ("pod", label("queue-name", None)),
    ("pod", {"labels": {f"gatelift.dev/{key}": None for key in ("origin", "workload-uid", "epoch")}}),
    ("pod", {"finalizers": None}),
    ("workload", {"ownerReferences": None}),
    ("workload", {"annotations": {"gatelift.dev/owner": None, f"{K}is-group-workload": None}}),
]


async def patch(world: World, group: Group, what: str, change: Json, *as_whom: str) -> None:
    name = group.name if what == "workload" else f"{group.name}-b"
    said = json.dumps({"metadata": change})
    await Kubectl(world.clusters["mgmt"])("patch", what, "-n", NAMESPACE, name, "--type=merge", "-p", said, *as_whom)


async def runs(world: World, queue: str) -> Group:
    group = Group(world, "marked", queue)
    await group.make("ab", LONG)
    await group.make("c", LONG, cpu="50m")
    await group.run("abc")
    if queue != "at-home":
        await placed_at(group)
    return group


def started(group: Group) -> list[Any]:
    return sorted(run.name for run in group.all_runs())


@PLACES
async def test_hd_421_what_says_whose_a_pod_is_stays_while_it_runs(world: World, queue: str) -> None:
    """HD-420, HD-421, HD-422: each change is refused with its field, the rule and the way out."""
    group = await runs(world, queue)
    for what, change, text in REFUSED:
        if what == "pod" and "podset" in json.dumps(change) and queue != "at-home":
            continue  # there it is the worker's pod that says it
        with pytest.raises(KubectlError, match=text):
            await patch(world, group, what, change)
    theirs = {**(await group.workload() or {}), "metadata": {"name": f"{group.name}-x", "namespace": NAMESPACE}}
    theirs["metadata"] |= note("is-group-workload", "true")
    with pytest.raises(KubectlError, match="says that the Workload is a group of pods'"):
        await Kubectl(world.clusters["mgmt"])("create", "-f", "-", manifest=theirs)
    assert group.running() == "abc"
    await group.end()


def declares(role: str, cpu: str) -> str:
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
    return json.dumps([{"name": role, "count": 3, "template": template}])


@PLACES
async def test_hd_480_no_pod_is_made_larger_by_sets_that_are_declared_once_there_is_quota(
    world: World, queue: str
) -> None:
    """HD-480, HD-482: neither by a patch, which is refused, nor by a new pod, which is told why it waits."""
    group = Group(world, "declared", queue)
    role = note("role-hash", "mine")["annotations"]
    await group.make("abc", LONG, notes=role)
    await group.run("abc")
    if queue != "at-home":
        await placed_at(group)
    sets = {f"{K}pod-group-sets": declares("mine", "3")}
    for change in ({"annotations": sets, **label("pod-group-role", "mine")}, label("pod-group-role", "mine")):
        with pytest.raises(KubectlError, match=r"cannot be given once the group runs, .*: make a new group"):
            await patch(world, group, "pod", change)
    await group.delete("b")
    await group.make("d", LONG, cpu="3", labels={f"{K}pod-group-role": "mine"}, notes=sets)
    said = await group.warned("d", "GroupShapeMismatch")
    assert "pod-group-sets]: declares other sets than the group has quota for: " in said
    await group.make("e", LONG, notes=role)
    await group.run("ace")
    assert group.runs_of("d") == []
    await group.delete("d")  # no Workload names it
    await group.end()


@PLACES
async def test_hd_421_around_the_webhook_nothing_that_runs_is_ended_and_nothing_runs_twice(
    world: World, queue: str
) -> None:
    """HD-420, HD-421, HD-422, HD-424: all of them one after the other, and the manager begins anew in between."""
    group = await runs(world, queue)
    before = started(group)
    for what, change in ALL:
        await patch(world, group, what, change, *AROUND[what])
    async with manager_with(world, {}):
        pass  # ended and begun anew
    for what, change in ALL:
        await patch(world, group, what, change, *AROUND[what])
    other = Group(world, "other", queue, total=1)
    await other.make("x", LONG, cpu="50m")
    await other.run("x")
    assert (group.running(), started(group)) == ("abc", before)
    await other.end()
    await world.delete(WORKLOAD, group.name)
    await group.run("")
    await group.remove()  # it named its pods no more
