"""What the webhook sets on elastic Jobs and refuses of them (KEP-77), with the kind that is not the product's yet."""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.job import elastic_rules
from gatelift_kinds.job.elastic_kind import ElasticJobKind
from gatelift_kinds.registry import ELASTIC_JOB_KIND as KIND
from gatelift_kinds.registry import JOB_KIND, POD_GROUP_KIND, POD_KIND
from gatelift_kinds.shared.review import WebhookFacts
from gatelift_sandbox.embedded.patching import json_patch
from support.manager.webhook_documents import DEFAULT, ELSEWHERE, FACTS, Json, K, Q, a_job, a_pod, defaulted, told

OFF = ElasticJobKind(on=False)
ASKS = {f"{K}elastic-job": "true"}
GATE = {"name": f"{K}elastic-job"}
CONTAINERS = [{"name": "c"}]
TOPOLOGY = f"{K}podset-required-topology", f"{K}podset-preferred-topology", f"{K}podset-unconstrained-topology"


def template(*gates: Json, **notes: str) -> Json:
    spec: Json = {"containers": CONTAINERS, **({"schedulingGates": list(gates)} if gates else {})}
    return {**({"metadata": {"annotations": notes}} if notes else {}), "spec": spec}


def gated(labels: Json | None = None, notes: Json | None = None, *gates: Json, **spec: Any) -> Json:
    marks = Q if labels is None else labels, ASKS if notes is None else notes
    return a_job(*marks, template=template(*gates or (GATE,)), **spec)


def gates_of(document: Json) -> list[Json] | None:
    found: list[Json] | None = document["spec"]["template"]["spec"].get("schedulingGates")
    return found


# --- the gate in the template -----------------------------------------------------------------------------------------

GATED = [
    ("EJ-051 off, not asked for", OFF, {}, (), None),
    ("EJ-052 off, asked for", OFF, ASKS, (), None),
    ("EJ-053 on, not asked for", KIND, {}, (), None),
    ("EJ-054 on, asked for", KIND, ASKS, (), [GATE]),
    ("EJ-055 on, asked for, and there", KIND, ASKS, (GATE,), [GATE]),
    ("on, asked for, with a gate of its user's", KIND, ASKS, ({"name": "mine"},), [{"name": "mine"}, GATE]),
    ("another value", KIND, {f"{K}elastic-job": "yes"}, (), None),
]


@pytest.mark.parametrize(("kind", "notes", "gates", "after"), [pytest.param(*row[1:], id=row[0]) for row in GATED])
def test_sl_05_the_template_gets_the_gate_once(kind: Any, notes: Json, gates: tuple[Json, ...], after: Any) -> None:
    """EJ-051, EJ-052, EJ-053, EJ-054, EJ-055."""
    made = defaulted(kind, a_job(Q, notes, template=template(*gates)), FACTS)
    assert gates_of(made) == after
    assert made["spec"]["suspend"] is True, "suspended at creation as ever"
    assert kind.defaults(made, FACTS) == (), "and nothing is doubled"


def test_sl_05_what_is_not_queued_here_gets_no_gate_that_nobody_would_take_off() -> None:
    for labels, facts in (({}, FACTS), (Q, WebhookFacts(namespace_selected=False)), (Q, WebhookFacts(by_agent=True))):
        assert KIND.defaults(a_job(labels, ASKS, template=template()), facts) == ()
    assert gates_of(defaulted(KIND, a_job({}, ASKS, template=template()), DEFAULT)) == [GATE], "by the default queue"


def test_sl_05_a_job_that_gets_a_queue_later_gets_its_gate_then_unless_it_has_begun() -> None:
    before, after = (
        a_job({}, ASKS, template=template(), suspend=True),
        a_job(Q, ASKS, template=template(), suspend=True),
    )
    found = KIND.corrected(before, after, FACTS)
    assert gates_of(json_patch(after, list(found.operations))) == [GATE]
    assert found.warnings == ()
    began = {**before, "status": {"startTime": "2026-01-01T00:00:00Z"}}
    assert KIND.corrected(began, after, FACTS).operations == (), "the API server takes no other template of it"
    assert OFF.corrected(before, after, FACTS).operations == ()


def test_sl_06_a_gate_that_is_taken_out_of_the_template_of_what_waits_is_put_back_and_told() -> None:
    before, after = gated(suspend=True), a_job(Q, ASKS, template=template(), suspend=True)
    found = KIND.corrected(before, after, FACTS)
    assert gates_of(json_patch(after, list(found.operations))) == [GATE]
    assert found.warnings == (elastic_rules.STAYS_GATED,)
    ours = WebhookFacts(local_queues={"q": False}, by_agent=True)
    assert KIND.corrected(before, after, ours).operations == ()


def test_sl_06_the_webhook_is_asked_about_each_job_that_asks_and_has_no_gate() -> None:
    named = [one.name for one in elastic_rules.HOOK.put_right]
    assert named == ["unsuspend", "elastic"]
    assert JOB_KIND.hook is not None
    assert [one.name for one in JOB_KIND.hook.put_right] == ["unsuspend"], "what is served is asked as before"


# --- what is refused --------------------------------------------------------------------------------------------------

ANOTHER = "metadata.annotations[kueue.x-k8s.io/elastic-job]: Invalid value"
MIN, KEPS = f"{K}job-min-parallelism", f"{K}dynamically-sized-job"
CREATED = [
    ("EJ-079 asked for", ASKS, {}, ""),
    ("any other value", {f"{K}elastic-job": "yes"}, {}, f'{ANOTHER}: "yes": may only be "true": leave the annotation out'),
    ("false", {f"{K}elastic-job": "false"}, {}, f'{ANOTHER}: "false"'),
    ("empty", {f"{K}elastic-job": ""}, {}, ANOTHER),
    ("EJ-075 with partial admission", {**ASKS, MIN: "2"}, {}, f'metadata.annotations[{MIN}]: Invalid value: "2": cannot be combined with {K}elastic-job'),
    ("in the words of the document", {KEPS: "true", MIN: "2"}, {}, f'metadata.annotations[{MIN}]: Invalid value: "2": cannot be combined with {KEPS}'),
    ("EJ-076 with required topology", ASKS, {TOPOLOGY[0]: "rack"}, f"spec.template.metadata.annotations[{TOPOLOGY[0]}]: Forbidden"),
    ("EJ-077 with preferred topology", ASKS, {TOPOLOGY[1]: "rack"}, f"spec.template.metadata.annotations[{TOPOLOGY[1]}]: Forbidden: cannot be combined with {K}elastic-job"),
    ("EJ-078 with unconstrained topology", ASKS, {TOPOLOGY[2]: "true"}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("notes", "near", "says"), [pytest.param(*row[1:], id=row[0]) for row in CREATED])
def test_sl_07_a_new_job_that_asks_to_be_elastic(notes: Json, near: Json, says: str) -> None:
    """EJ-075, EJ-076, EJ-077, EJ-078, EJ-079."""
    document = a_job(Q, notes, template=template(GATE, **near), suspend=True, parallelism=4, completions=4)
    verdict = KIND.validate_create(document, FACTS)
    assert verdict.allowed is (says == ""), told(verdict)
    assert not says or any(line.startswith(says) for line in told(verdict)), told(verdict)
    assert all("\n" not in line for line in told(verdict))


def test_sl_07_the_same_is_said_of_a_change_that_asks_for_it_and_not_again_of_one_that_does_not() -> None:
    plain, near = gated(suspend=True), a_job(Q, ASKS, template=template(GATE, **{TOPOLOGY[1]: "rack"}), suspend=True)
    assert not KIND.validate_update(plain, near, FACTS).allowed
    assert KIND.validate_update(near, near, FACTS).allowed, "what was there before is changed and deleted as ever"


@pytest.mark.parametrize(
    ("before", "after"),
    [pytest.param(ASKS, {}, id="EJ-082 taken off"), pytest.param({}, ASKS, id="EJ-083 added later")],
)
def test_sl_02_it_is_elastic_from_its_beginning_or_never(before: Json, after: Json) -> None:
    for kind in (KIND, JOB_KIND):
        verdict = kind.validate_update(a_job(Q, before, suspend=True), a_job(Q, after, suspend=True), FACTS)
        assert any(line.startswith("metadata.annotations: Invalid value") for line in told(verdict)), told(verdict)


@pytest.mark.parametrize("kind", [POD_KIND, POD_GROUP_KIND], ids=["a pod", "a pod of a group"])
def test_sl_02_a_kind_that_cannot_be_elastic_refuses_it(kind: Any) -> None:
    """EJ-080."""
    labels = {**Q, **({f"{K}pod-group-name": "g"} if kind is POD_GROUP_KIND else {})}
    verdict = kind.validate_create(a_pod(labels, {**ASKS, f"{K}pod-group-total-count": "1"}), FACTS)
    assert any(
        f"metadata.annotations[{K}elastic-job]: Forbidden: is not supported for pods" in one for one in told(verdict)
    )


def test_sl_01_switched_off_the_annotation_has_no_effect_and_says_so() -> None:
    for kind in (OFF, JOB_KIND):
        verdict = kind.validate_create(a_job(Q, ASKS, template=template(), suspend=True), FACTS)
        assert verdict.allowed
        assert any("is not acted on: the Job keeps the size" in one for one in verdict.warnings)
    assert KIND.validate_create(gated(suspend=True), FACTS).warnings == (), "switched on there is nothing to say"
    user_gate = KIND.validate_create(gated(None, {}, suspend=True), FACTS)
    assert any("is a gate that nothing here takes off" in one for one in user_gate.warnings), "who does not ask is told"


# --- another size -----------------------------------------------------------------------------------------------------


def resized(before: Json, after: Json, kind: Any = KIND, facts: WebhookFacts = FACTS) -> Any:
    shape: Json = {"suspend": False}
    return kind.validate_update(gated(**shape, **before), gated(**shape, **after), facts)


@pytest.mark.parametrize("facts", [FACTS, ELSEWHERE], ids=["at home", "elsewhere"])
@pytest.mark.parametrize("wanted", [10, 1, 0])
def test_sl_01_a_running_job_grows_and_shrinks_and_nothing_is_said(wanted: int, facts: WebhookFacts) -> None:
    manager = {} if facts is FACTS else {"managedBy": f"{K}multikueue"}
    before = {"parallelism": 3, "completions": 20, **manager}
    verdict = resized(before, {**before, "parallelism": wanted}, facts=facts)
    assert (told(verdict), verdict.warnings) == ([], ())


def test_sl_09_without_asking_or_switched_off_growth_is_refused_and_shrinking_warned_of_as_before() -> None:
    before, larger, smaller = ({"parallelism": count, "completions": 20} for count in (3, 10, 1))
    for kind in (OFF, JOB_KIND):
        assert "cannot grow from 3 to 10 pods at once while the Job runs" in told(resized(before, larger, kind))[0]
        assert "is stopped and queued again" in resized(before, smaller, kind).warnings[0]
    for notes, gate in (({}, GATE), (ASKS, {"name": "mine"})):  # not asked for, or made while it was off
        old, new = (gated(None, notes, gate, suspend=False, **spec) for spec in (before, larger))
        assert not KIND.validate_update(old, new, FACTS).allowed


TIED = [
    ("both together", (3, 3), (5, 5), ""),
    ("both down to nothing", (3, 3), (0, 0), ""),
    ("parallelism alone", (3, 3), (5, 3), 'spec.completions: Invalid value: "3": must be 5, as parallelism'),
    ("completions alone", (3, 3), (3, 5), 'spec.completions: Invalid value: "5": must be 3, as parallelism'),
    ("with more to do than at once", (3, 20), (7, 20), ""),
    ("above what is to be done", (3, 20), (21, 20), ""),
    ("to as many as are to be done", (3, 20), (20, 20), 'spec.parallelism: Invalid value: "20": must not become equal'),
]


@pytest.mark.parametrize(("before", "after", "says"), [pytest.param(*row[1:], id=row[0]) for row in TIED])
def test_sl_25_completions_of_an_indexed_job_change_with_its_parallelism(before: Any, after: Any, says: str) -> None:
    old, new = (
        {"parallelism": each[0], "completions": each[1], "completionMode": "Indexed"} for each in (before, after)
    )
    verdict = resized(old, new)
    assert verdict.allowed is (says == ""), told(verdict)
    assert told(verdict) == [] if not says else told(verdict)[0].startswith(says)
    waiting = KIND.validate_update(gated(suspend=True, **old), gated(suspend=True, **new), FACTS)
    assert waiting.allowed, "what waits begins with what it has then"
    plain = {key: value for key, value in new.items() if key != "completionMode"}
    assert resized({**plain, "parallelism": 3}, plain).allowed, "without indexes there is nothing to hold together"
