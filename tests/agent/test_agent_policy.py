"""What a worker lets be placed by default (IS-20): Pod Security's level Baseline, and what lists name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from gatelift_agent.config import PolicySection
from gatelift_agent.core.refusing import policy as policies
from gatelift_agent.core.refusing.sanitise import sanitise
from gatelift_agent.core.values.settings import Policy
from gatelift_kinds.kind import Kind
from gatelift_kinds.registry import JOB_KIND, POD_KIND, SERVED
from gatelift_kube.deciding.writes import Create, WriteError
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.refusals import Refusal
from support.agent.stage import Stage
from support.agent.values import JOB_SPEC, POD_SPEC
from support.baseline import ALL_TYPES, AT_HOME, BEYOND_BASELINE, BEYOND_LISTS, NAMES_A_SECRET, Case, a_spec

CASES = {**BEYOND_BASELINE, **BEYOND_LISTS}


def kind_named(name: str) -> Kind[Any]:
    found = SERVED.named(name)
    assert found is not None
    return found


def refusal_of(case: Case, policy: Policy, kind: str = "Pod") -> tuple[Refusal, str] | None:
    spec: Mapping[str, Any] = case.spec
    if kind == "Job":
        spec = {"template": {"spec": case.spec, "metadata": {"annotations": case.annotations}}}
    found = policies.spec_refusal(kind_named(kind), msgspec.json.encode(spec), policy)
    if found is None and kind == "Pod":
        found = policies.marks_refusal(msgspec.json.encode({"annotations": case.annotations}), policy)
    return found


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("name", CASES)
def test_is_20_it_is_denied_by_default_in_words_and_accepted_when_the_policy_says_so(name: str, kind: str) -> None:
    case = CASES[name]
    found = refusal_of(case, Policy(), kind)
    assert found is not None
    refusal, text = found
    assert refusal is Refusal.POLICY
    assert "policy." in text
    assert "\n" not in text
    assert refusal_of(case, Policy(**case.allowed), kind) is None


@pytest.mark.parametrize("name", AT_HOME)
def test_is_20_what_stays_in_its_namespace_passes(name: str) -> None:
    assert refusal_of(AT_HOME[name], Policy()) is None


def test_is_20_what_a_check_adds_is_held_to_the_same_lists() -> None:
    additions = msgspec.json.encode({"tolerations": [{"key": "node-role.kubernetes.io/control-plane"}]})
    found = policies.additions_refusal([m.PodSetRequest(name="main", count=1, additions=additions)], Policy())
    assert found is not None
    assert found[0] is Refusal.POLICY
    keyed = msgspec.json.encode({"tolerations": [{"key": "spot"}]})
    assert policies.additions_refusal([m.PodSetRequest(name="main", count=1, additions=keyed)], Policy()) is None


def test_is_20_the_defaults_of_the_file_are_those_of_the_core() -> None:
    section, policy = PolicySection(), Policy()
    for name in PolicySection.model_fields:
        said, meant = getattr(section, name), getattr(policy, name)
        assert (frozenset(said) if isinstance(said, tuple) else said) == meant, name


@pytest.mark.parametrize(
    ("names", "name", "on"),
    [
        (("a",), "a", True),
        (("a",), "ab", False),
        (("team-*",), "team-a", True),
        (("team-*",), "other", False),
        (("*",), "anything", True),
        ((), "a", False),
    ],
)
def test_is_20_a_list_has_names_and_beginnings(names: tuple[str, ...], name: str, on: bool) -> None:
    case = Case(a_spec(volumes=[{"name": "v", "secret": {"secretName": name}}]))
    assert (refusal_of(case, Policy(secrets=frozenset(names))) is None) is on


def test_is_20_a_taint_of_nodes_is_tolerated_by_its_own_entry_only() -> None:
    case = Case(a_spec(tolerations=[{"key": "node-role.kubernetes.io/infra", "operator": "Exists"}]))
    assert refusal_of(case, Policy(tolerations=frozenset({"*"}))) is not None
    assert refusal_of(case, Policy(tolerations=frozenset({"*", "node-role.kubernetes.io/infra"}))) is None


@pytest.mark.parametrize("effect", ["NoExecute", "NoSchedule", ""])
def test_is_20_a_node_in_trouble_may_be_left_late_and_is_chosen_by_nobodys_wish(effect: str) -> None:
    """Every pod stays there for five minutes at most; to be put there is another thing, and so is any effect at all."""
    named = {"effect": effect} if effect else {}
    toleration = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 5, **named}
    assert (refusal_of(Case(a_spec(tolerations=[toleration])), Policy()) is None) is (effect == "NoExecute")


def test_is_20_a_token_volume_of_its_users_is_judged() -> None:
    """Only one by the name that an API server gives is not made here, and so not judged."""
    volume = {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    found = refusal_of(Case(a_spec(volumes=[volume])), Policy(volumes=frozenset({"projected"})))
    assert found is not None
    assert "volume type serviceAccountToken is not on the allow-list" in found[1]


def test_is_20_what_is_placed_is_what_was_judged() -> None:
    """The token volume that home's API server added is not judged, and is not made here either."""
    token = {"name": "kube-api-access-x", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
    spec = msgspec.json.encode(a_spec(volumes=[token]))
    denying = Policy(volumes=frozenset())
    assert policies.spec_refusal(POD_KIND, spec, denying) is None
    assert "volumes" not in msgspec.json.decode(sanitise(POD_KIND, spec, denying))


NARROW = Policy(
    secrets=frozenset({"other"}),
    image_pull_secrets=frozenset(),
    persistent_volume_claims=frozenset(),
    volumes=ALL_TYPES,
)


@pytest.mark.parametrize("field", NAMES_A_SECRET)
def test_is_20_secrets_and_claims_are_held_to_their_lists_wherever_they_are_named(field: str) -> None:
    case = Case(NAMES_A_SECRET[field])
    found = refusal_of(case, NARROW)
    assert found is not None
    assert "is not on the allow-list" in found[1]
    assert refusal_of(case, Policy(volumes=ALL_TYPES)) is None


UNCONFINED = {"seccompProfile": {"type": "Unconfined"}}
LOOSE, STRICT = Policy(unconfined=True), Policy()


def test_is_20_what_may_not_be_placed_is_refused_with_its_reason_and_never_made() -> None:
    stage = Stage()
    stage.start()
    stage.place(spec={**POD_SPEC, "securityContext": UNCONFINED})
    stage.pass_seconds(120.0)
    (told,) = stage.peer.of(m.Refused)
    assert told.refusal is Refusal.POLICY
    assert "seccompProfile" in told.text
    assert not stage.written(Create)


def test_is_20_a_check_that_adds_what_may_not_be_is_refused_too() -> None:
    added = msgspec.json.encode({"tolerations": [{"operator": "Exists"}]})
    stage = Stage()
    stage.start()
    stage.place(pod_sets=(m.PodSetRequest(name="main", count=1, additions=added),))
    assert [told.refusal for told in stage.peer.of(m.Refused)] == [Refusal.POLICY]
    assert not stage.written(Create)


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_is_20_what_runs_already_runs_on_when_the_policy_becomes_stricter(kind: str) -> None:
    name = "p" if kind == "Pod" else "j"
    stage = Stage(policy=LOOSE)
    stage.start()
    loose: dict[str, Any] = {**POD_SPEC, "securityContext": UNCONFINED}
    of_a_job = {**JOB_SPEC["template"]["spec"], "securityContext": UNCONFINED}
    spec = loose if kind == "Pod" else {**JOB_SPEC, "template": {"spec": of_a_job}}
    stage.place(kind=kind, name=name, spec=spec)
    assert stage.state() == "Running"
    stage._policy = STRICT
    stage.restart()
    stage.commit(kind=kind, name=name, spec=spec)
    stage.confirm()
    stage.pass_seconds(120.0)
    assert stage.state() == "Running"
    assert not stage.peer.of(m.Refused) + stage.peer.of(m.Evicted) + stage.peer.of(m.Stopped)


def test_is_20_what_this_clusters_api_server_refuses_is_refused_with_its_words() -> None:
    """Pod Security by the namespace's label: of a pod, and of those that a Job would make."""
    for kind, name in (("Pod", "p"), ("Job", "j")):
        stage = Stage()
        stage.start()
        stage.fail = lambda write: (
            WriteError.DENIED if isinstance(write, Create) and write.ref.resource == POD else None
        )
        stage.place(kind=kind, name=name)
        stage.pass_seconds(120.0)
        assert [told.refusal for told in stage.peer.of(m.Refused)] == [Refusal.DENIED]


@pytest.mark.parametrize("field", ["manualSelector", "selector"])
def test_hd_221_a_job_that_selects_its_pods_itself_is_placed_nowhere_whatever_the_policy_says(field: str) -> None:
    spec = {**JOB_SPEC, "manualSelector": True, "selector": {"matchLabels": {"foo": "x"}}}
    if field == "selector":
        del spec["manualSelector"]
    found = policies.spec_refusal(JOB_KIND, msgspec.json.encode(spec), Policy())
    assert found is not None
    refusal, text = found
    assert refusal is Refusal.INVALID
    assert text.startswith(f"spec.{field}: ")
    assert "without spec.selector and spec.manualSelector" in text
