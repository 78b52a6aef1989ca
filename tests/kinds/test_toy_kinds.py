"""RM-4: a kind is a folder. Two that the product does not know go through both cores: `support.toys`."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gatelift.webhooks import judge
from gatelift.webhooks.review import Question
from gatelift_agent.core.changes import allowances
from gatelift_agent.core.refusing import policy as policies
from gatelift_agent.core.reporting.missing_pods import MISSING_SECONDS
from gatelift_agent.core.values.settings import Policy
from gatelift_kinds.registry import BARE_KIND, JOB_KIND, POD_KIND, Registry
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.values import Sight
from gatelift_kube.deciding.writes import Create
from gatelift_kube.values import resources
from gatelift_kube.values.resources import CUSTOM_RESOURCE_DEFINITION, POD, ObjectKey, ObjectRef
from gatelift_wire.values import messages as m
from gatelift_wire.values.refusals import Refusal
from support.agent.stage import Stage
from support.manager import api
from support.manager.builders import NAMESPACE, Doc, a_pod, a_setting
from support.manager.world import World, a_world
from support.toys.claimed_pod.kind import LABEL, ClaimedPodKind
from support.toys.training.kind import TrainingKind
from support.toys.training.objects import DEFINITION, TRAINING, Training, a_group

TRAINING_KIND = TrainingKind()
KINDS = Registry(ClaimedPodKind(), POD_KIND, JOB_KIND, TRAINING_KIND, BARE_KIND)
SPEC = {"leader": a_group(cpu="2"), "workers": a_group(cpu="1", replicas=3)}


def a_training() -> Doc:
    labels = {markers.QUEUE_NAME: "main"}
    metadata = {"name": "train", "namespace": NAMESPACE, "labels": labels, "annotations": {}}
    return {"apiVersion": TRAINING.api_version, "kind": TRAINING.kind, "metadata": metadata, "spec": SPEC}


def commits(world: World) -> dict[str, m.Commit]:
    return {one.name: one for _, one in world.links.log if isinstance(one, m.Commit)}


# --- a kind of a resource of its own, with two pod sets and two pod specs ---------------------------------------------


def test_rm_4_a_toy_kind_is_admitted_with_two_pod_sets_and_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(api.ALL, f"{TRAINING.api_version}/{TRAINING.kind}", TRAINING)
    world = a_world(a_setting(cpu=8), kinds=KINDS)
    world.api.apply(a_training())
    world.advance(5.0)
    workload = world.find("Workload")
    assert [(one["name"], one["count"]) for one in workload["spec"]["podSets"]] == [("leader", 1), ("workers", 3)]
    admission = workload["status"]["admission"]
    assert [one["resourceUsage"] for one in admission["podSetAssignments"]] == [{"cpu": "2"}, {"cpu": "3"}]
    commit = commits(world)["train"]
    assert (commit.kind, [one.name for one in commit.pod_sets]) == ("Training", ["leader", "workers"])
    world.restart()
    world.advance(5.0)
    assert world.find("Workload")["metadata"]["uid"] == workload["metadata"]["uid"], "a later leader knows it, too"


def placed(spec: Doc, **settings: Any) -> Stage:
    """Return a worker to which a training was committed."""
    stage = Stage(registry=KINDS, kinds=("Pod", "Job", "Training"), **settings)
    stage.create(CUSTOM_RESOURCE_DEFINITION, DEFINITION)
    stage.start()
    asked = tuple(
        m.PodSetRequest(name=name, count=group["replicas"], requests=(("cpu", 1000 * cpu * group["replicas"]),))
        for (name, group), cpu in zip(spec.items(), (2, 1), strict=True)
    )
    stage.place(kind="Training", name="train", spec=spec, pod_sets=asked)
    return stage


def gates(document: dict[str, Any]) -> list[Any]:
    return [document["spec"][name]["template"]["spec"].get("schedulingGates") for name in ("leader", "workers")]


def test_rm_4_a_toy_kind_is_made_gated_and_let_go_in_both_pod_sets() -> None:
    stage = placed(SPEC)
    (create,) = [one for one in stage.writes if isinstance(one, Create) and one.ref.resource == TRAINING]
    assert gates(json.loads(create.body)) == [[{"name": markers.ADMISSION_GATE}]] * 2, "held back in both"
    found = stage.document(TRAINING, "train")
    assert found is not None
    assert gates(found) == [None, None], "let go in both"
    assert stage.peer.of(m.GatesLifted)


@pytest.mark.parametrize("bad", ["leader", "workers"])
def test_rm_4_every_pod_spec_of_an_object_is_judged(bad: str) -> None:
    spec = {**SPEC, bad: a_group(hostNetwork=True)}
    refused = policies.spec_refusal(TRAINING_KIND, msgspec.json.encode(spec), Policy())
    assert refused is not None
    assert refused[0] is Refusal.POLICY
    assert f"spec.{bad}.template.spec.hostNetwork" in refused[1]
    stage = placed(spec)
    assert stage.document(TRAINING, "train") is None
    assert [one.refusal for one in stage.peer.of(m.Refused)] == [Refusal.POLICY]


@pytest.mark.parametrize("missing", ["leader", "workers"])
def test_rm_4_a_pod_spec_that_is_not_there_is_refused(missing: str) -> None:
    spec = {name: group for name, group in SPEC.items() if name != missing}
    refused = policies.spec_refusal(TRAINING_KIND, msgspec.json.encode(spec), Policy())
    assert refused == (Refusal.INVALID, f"spec.{missing}: must be there; send it as the API server holds it")


@pytest.mark.parametrize("larger", ["leader", "workers"])
def test_rm_4_each_pod_set_is_let_go_with_what_was_granted_for_it(larger: str) -> None:
    stage = placed(SPEC)
    placement = stage.placement()
    assert placement is not None
    (tracked,) = placement.objects.values()
    assert tracked.granted == {"leader/cpu": 2000, "workers/cpu": 1000}
    asked = {"leader": {"cpu": 2000}, "workers": {"cpu": 1000}}
    assert allowances.refusal(TRAINING_KIND, tracked, asked) is None
    refused = allowances.refusal(TRAINING_KIND, tracked, {**asked, larger: {"cpu": 2001}})
    assert refused is not None
    assert refused[0] is Refusal.REQUESTS_RAISED


def test_rm_4_one_more_pod_is_asked_about_for_each_pod_set_that_lacks_some() -> None:
    stage = placed(SPEC)
    before = len(stage.writes)
    stage.pass_seconds(MISSING_SECONDS + 1.0)
    asked = [json.loads(one.body) for one in stage.writes[before:] if isinstance(one, Create) and one.dry_run]
    assert [one["metadata"]["name"] for one in asked] == ["train-leader", "train-workers"]
    [trouble] = stage.peer.of(m.CountsReport)[-1].troubles
    assert trouble.text == "1 of 1 pod is not there, and none is made: its events there say why"


# --- a second kind of the resource Pod --------------------------------------------------------------------------------


def test_rm_4_two_kinds_of_one_resource_live_side_by_side() -> None:
    world = a_world(a_setting(), kinds=KINDS)
    plain, claimed = a_pod("plain").document(), a_pod("claimed").document()
    claimed["metadata"]["labels"][LABEL] = "yes"
    world.api.apply(plain)
    world.api.apply(claimed)
    world.advance(5.0)
    shapes = {one["metadata"]["name"].split("-")[0]: one["spec"]["podSets"][0]["name"] for one in world.all("Workload")}
    assert shapes == {"pod": "main", "claimedpod": "claimed"}
    assert {name: one.kind for name, one in commits(world).items()} == {"plain": "Pod", "claimed": "ClaimedPod"}
    world.restart()
    world.advance(5.0)
    assert len(world.all("Workload")) == 2, "each is known as what it was"


def test_rm_4_an_object_stays_of_the_kind_that_it_is_known_as() -> None:
    world = a_world(a_setting(cpu=0), kinds=KINDS)
    world.api.apply(a_pod("plain").document())
    world.advance(5.0)
    ref = ObjectRef(POD, ObjectKey(NAMESPACE, "plain"))
    world.api.edit(ref, lambda one: one["metadata"]["labels"].update({LABEL: "yes"}))
    world.advance(5.0)
    assert [one["spec"]["podSets"][0]["name"] for one in world.all("Workload")] == ["main"], "as it asked for quota"


def test_rm_4_the_first_kind_in_order_has_an_object_that_two_select() -> None:
    pod = api.seen(ObjectRef(POD, ObjectKey(NAMESPACE, "one")), labelled()).object
    assert KINDS.of(POD, pod) is next(iter(KINDS))
    behind = Registry(POD_KIND, ClaimedPodKind())
    assert behind.of(POD, pod) is POD_KIND
    assert KINDS.of(resources.NODE, pod) is None


def labelled() -> Doc:
    document = a_pod().document()
    document["metadata"] |= {"uid": "u", "resourceVersion": "1", "labels": {LABEL: ""}}
    return document


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [(None, {LABEL: ""}, "ClaimedPod"), (None, {}, "Pod"), ({}, {LABEL: ""}, "Pod"), ({LABEL: ""}, {}, "ClaimedPod")],
)
def test_rm_4_the_webhook_asks_the_kind_of_what_was_there_before(
    before: dict[str, str] | None, after: dict[str, str], kind: str
) -> None:
    old, new = ({"metadata": {"labels": labels}} if labels is not None else {} for labels in (before, after))
    asked = Question(uid="u", operation="", kind="Pod", namespace=NAMESPACE, new=new, old=old, groups=())
    found = judge.kind_of(KINDS, POD, asked)
    assert found is not None
    assert found.name == kind


# --- what a registry refuses ------------------------------------------------------------------------------------------


def test_kinds_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="one name"):
        Registry(POD_KIND, type(POD_KIND)())


def test_kinds_of_one_resource_that_see_it_otherwise_are_refused() -> None:
    class Otherwise(ClaimedPodKind):
        sight = Sight()

    with pytest.raises(ValueError, match="ClaimedPod and Pod are of one resource"):
        Registry(POD_KIND, Otherwise())


def test_kinds_that_read_one_resource_as_two_structs_are_refused() -> None:
    class Otherwise(ClaimedPodKind):
        struct = Training

    with pytest.raises(ValueError, match="read as Pod, not as Training"):
        Registry(POD_KIND, Otherwise())
