"""A driver declares workers that come later (KEP-976, story 3): admitted as a whole, each one by role and shape."""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import json

import pytest

from gatelift_wire.values.messages import Commit
from support.manager.api import Doc
from support.manager.group_world import (
    GROUP,
    THEIRS,
    K,
    a_member,
    a_world_with_groups,
    join,
    owners_of,
    pod_ref,
    warnings,
)
from support.manager.world import World

GATED = [{"name": f"{K}admission"}]


def a_set(name: str, count: int, cpu: str = "1") -> Doc:
    container = {"name": "w", "resources": {"requests": {"cpu": cpu}}}
    return {"name": name, "count": count, "template": {"spec": {"containers": [container]}}}


def a_driver(
    name: str = "driver", workers: int = 2, *, at: int = 0, cpu: str = "1", wants: str = "1", notes: Doc | None = None
) -> Doc:
    """Return a driver, which asks for `cpu`, of workers that each ask for `wants`."""
    sets = json.dumps([{"name": "driver", "count": 1}, a_set("workers", workers, wants)])
    made = a_member(name, at=at, cpu=cpu, notes={f"{K}pod-group-sets": sets, **(notes or {})})
    del made["metadata"]["annotations"][f"{K}pod-group-total-count"]
    return made


def a_worker(name: str, *, at: int, cpu: str = "1", role: str = "workers", **spec: object) -> Doc:
    made = a_member(name, at=at, cpu=cpu, labels={f"{K}pod-group-role": role})
    del made["metadata"]["annotations"][f"{K}pod-group-total-count"]
    made["spec"].update(spec)
    return made


def lift(world: World, *names: str) -> None:
    """Let pods go as the agent of `local` does."""

    def let_go(document: Doc) -> None:
        document["spec"].update(schedulingGates=[], nodeName="n", nodeSelector={"flavor": "f"})
        document["metadata"]["labels"][f"{K}podset"] = document["metadata"]["labels"].get(
            f"{K}pod-group-role", "driver"
        )

    for name in names:
        world.api.edit(pod_ref(name), let_go)
    world.advance(2.0)


def placed(*members: Doc) -> World:
    world = a_world_with_groups()
    world.connect("local")
    join(world, *members, seconds=5.0)
    return world


def pod_sets(world: World) -> list[tuple[str, int, str]]:
    return [
        (each["name"], each["count"], each["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        for each in world.find("Workload", GROUP)["spec"]["podSets"]
    ]


def names(world: World) -> list[str]:
    return sorted(one["metadata"]["name"] for one in world.all("Pod"))


def wanted(world: World) -> list[str]:
    """Return the pods that run, or may be let go, as what is gathered says it."""
    work = world.machine.core.knowledge.works.gathered_at(THEIRS.key)
    assert work is not None
    assert work.gathered is not None
    workload = world.machine.core.knowledge.workloads[THEIRS.key]
    return sorted(one.called.name for one in work.gathered.parts(workload, {"driver": 1, "workers": 2}))


def contained(world: World) -> list[str]:
    return [one.text for one in world.notes if "it is left as it is" in one.text]


def test_dw_1_the_workload_is_made_at_once_and_has_the_declared_sets() -> None:
    world = placed(a_driver())
    assert pod_sets(world) == [("driver", 1, "1"), ("workers", 2, "1")]
    assert owners_of(world.find("Workload")) == ["driver"]
    assert world.writes("Workload").count("create") == 1
    (commit,) = [message for _, message in world.messages(Commit)]
    assert [(one.name, one.pod_set) for one in commit.objects] == [("driver", "driver")]
    assert warnings(world, "ErrWorkloadCompose") == []


def test_dw_1_workers_that_come_have_places_of_their_role_and_become_owners() -> None:
    world = placed(a_driver())
    lift(world, "driver")
    join(world, a_worker("w0", at=1), a_worker("w1", at=2))
    assert wanted(world) == ["driver", "w0", "w1"]
    assert owners_of(world.find("Workload")) == ["driver", "w0", "w1"]
    assert (warnings(world, "GroupShapeMismatch"), contained(world)) == ([], [])


def test_dw_2_workers_beyond_the_count_are_deleted_and_it_is_told() -> None:
    world = placed(a_driver())
    lift(world, "driver")
    join(world, *(a_worker(f"w{number}", at=number + 1) for number in range(4)))
    assert names(world) == ["driver", "w0", "w1"]
    assert [name for name, _ in warnings(world, "ExcessPodDeleted")] == ["w2", "w3"]


def test_dw_2_so_they_are_while_the_group_waits_by_role() -> None:
    world = a_world_with_groups()
    join(world, a_driver(), a_worker("w0", at=1), a_worker("w1", at=2), a_worker("w2", at=3))
    assert names(world) == ["driver", "w0", "w1"]


@pytest.mark.parametrize(
    ("worker", "difference"),
    [
        pytest.param(a_worker("w0", at=1, cpu="3"), "spec.requests.cpu: 3, declared 1", id="requests"),
        pytest.param(a_worker("w0", at=1, nodeSelector={"a": "b"}), 'spec.nodeSelector: {"a":"b"}, declared none', id="a selector"),
        pytest.param(a_worker("w0", at=1, tolerations=[{"key": "k", "operator": "Exists"}]), "spec.tolerations: ", id="a toleration"),
        pytest.param(a_worker("w0", at=1, priorityClassName="high"), "spec.priorityClassName: high, declared none", id="a class"),
        pytest.param(a_worker("w0", at=1, role="worker"), "did you mean workers?", id="BG-26 the document's own role"),
    ],
)  # fmt: skip
def test_dw_3_one_of_another_shape_is_never_let_go_and_told_the_first_difference_once(
    worker: Doc, difference: str
) -> None:
    world = placed(a_driver())
    lift(world, "driver")
    join(world, worker)
    world.advance(120.0)
    told = warnings(world, "GroupShapeMismatch")
    assert [name for name, _ in told] == ["w0"]
    assert difference in told[0][1]
    assert wanted(world) == ["driver"]
    assert names(world) == ["driver", "w0"]
    assert owners_of(world.find("Workload")) == ["driver"]


def test_hd_650_a_driver_whose_workers_tolerate_something_is_let_go_and_such_a_worker_is() -> None:
    """HD-650. What its user writes may say what is empty, which nobody else writes down."""
    tolerations = [{"key": "gpu", "operator": "Exists", "value": ""}, {"key": "pool", "value": "a"}]
    workers = a_set("workers", 2)
    workers["template"]["spec"]["tolerations"] = tolerations
    driver = a_driver(notes={f"{K}pod-group-sets": json.dumps([{"name": "driver", "count": 1}, workers])})
    world = placed(driver)
    lift(world, "driver")
    join(world, a_worker("w0", at=1, tolerations=[{"key": "gpu", "operator": "Exists"}, *tolerations[1:]]))
    assert wanted(world) == ["driver", "w0"]
    assert warnings(world, "GroupShapeMismatch") == []


def test_dw_3_one_of_the_declared_shape_takes_the_place() -> None:
    world = placed(a_driver(workers=1))
    lift(world, "driver")
    join(world, a_worker("big", at=1, cpu="3"), a_worker("right", at=2))
    assert wanted(world) == ["driver", "right"]


def test_dw_4_a_driver_waits_where_not_all_that_it_declares_fits() -> None:
    world = placed(a_driver(wants="5"))
    assert [message for _, message in world.messages(Commit)] == []
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "False"


@pytest.mark.parametrize(
    ("notes", "end"),
    [
        pytest.param({}, ("", ""), id="nobody says that it is over"),
        pytest.param({f"{K}retriable-in-group": "false"}, ("Failed", "Pods succeeded: 1/3, gone: 2"), id="retriable-in-group: false"),
    ],
)  # fmt: skip
def test_dw_5_a_driver_that_is_over_ends_its_group_where_it_says_so(
    notes: dict[str, str], end: tuple[str, str]
) -> None:
    world = placed(a_driver(notes=notes))
    lift(world, "driver")
    world.api.edit(pod_ref("driver"), lambda document: document["status"].update(phase="Succeeded"))
    world.advance(5.0)
    said = world.condition(world.find("Workload"), "Finished")
    assert (said.get("reason", ""), said.get("message", "")) == end


def test_dw_5_a_group_whose_pods_have_all_succeeded_is_over_without_that() -> None:
    world = placed(a_driver(workers=1))
    lift(world, "driver")
    join(world, a_worker("w0", at=1))
    lift(world, "w0")
    for name in ("w0", "driver"):
        world.api.edit(pod_ref(name), lambda document: document["status"].update(phase="Succeeded"))
    world.advance(5.0)
    said = world.condition(world.find("Workload"), "Finished")
    assert (said["reason"], said["message"]) == ("Succeeded", "Pods succeeded: 2/2")


def test_dw_7_another_driver_takes_the_place_of_one_that_failed_if_it_is_as_that_one_was() -> None:
    world = placed(a_driver())
    lift(world, "driver")
    world.api.edit(pod_ref("driver"), lambda document: document["status"].update(phase="Failed"))
    join(world, a_driver("larger", at=1, cpu="3"), a_driver("again", at=2))
    assert "again" in wanted(world)
    assert "larger" not in wanted(world)
    ((name, text),) = warnings(world, "GroupShapeMismatch")
    assert (name, "spec.requests.cpu: 3, declared 1" in text) == ("larger", True)


@pytest.mark.parametrize("workers", [2, 150])
def test_a_driver_that_comes_after_its_workers_says_what_they_are(workers: int) -> None:
    """More than are read in one pass, too: nobody is passed over."""
    world = a_world_with_groups()
    join(world, *(a_worker(f"w{number:03}", at=number % 50 + 1) for number in range(workers)))
    assert world.all("Workload") == []
    join(world, a_driver(workers=workers, at=59))
    assert len(owners_of(world.find("Workload"))) == workers + 1
    assert contained(world) == []


def test_bg_29_two_that_declare_different_sets_have_no_workload_and_are_told() -> None:
    world = a_world_with_groups()
    for each in (a_driver(at=1), a_driver("other", workers=3, at=2)):
        world.api.apply(each)
    world.restart()  # who leads now finds both at once
    world.advance(2.0)
    assert world.all("Workload") == []
    ((name, text),) = warnings(world, "ErrWorkloadCompose")
    assert (name, "differ in the declared sets" in text) == ("driver", True)


def test_who_leads_next_comes_to_the_same() -> None:
    world = placed(a_driver())
    lift(world, "driver")
    join(world, a_worker("w0", at=1), a_worker("big", at=2, cpu="3"))
    world.restart()
    world.connect("local")
    world.advance(5.0)
    assert wanted(world) == ["driver", "w0"]
    assert pod_sets(world) == [("driver", 1, "1"), ("workers", 2, "1")]
    assert world.find("Pod", "big")["spec"]["schedulingGates"] == GATED
