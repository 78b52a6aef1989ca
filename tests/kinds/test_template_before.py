"""What a Job's template was before it was let go at home, noted, known, and put back.

HD-195, HD-196, HD-199, HD-222, HD-223.
"""

from __future__ import annotations

import json

import pytest

from gatelift_kinds.job import template_before
from gatelift_kinds.job.rules import corrected, validate_create, validate_update
from gatelift_kinds.registry import JOB_KIND as KIND
from gatelift_kinds.shared import placed_mark
from gatelift_kinds.shared.review import WebhookFacts
from gatelift_kinds.shared.values import Placing, PodSetStart
from gatelift_kube.objects.core import Toleration
from support.manager.kind_objects import KEY, Json, a_job, job, merged, patched, raw

NOTE = "gatelift.dev/template-before"
POD_SET = "kueue.x-k8s.io/podset"
START = PodSetStart(
    pod_set="main",
    count=3,
    node_selector={"pool": "a"},
    tolerations=(Toleration(key="spot", operator="Exists"),),
    labels={"team": "check"},
    annotations={"ticket": "9"},
)
PLACING = Placing(key=KEY, origin="home", namespace="ns", starts=(START,))
GENERATED = {"controller-uid": "uid-j", "batch.kubernetes.io/job-name": "j"}


def waiting() -> Json:
    document = a_job()
    template = document["spec"]["template"]
    template["metadata"] = {"labels": {"app": "x", "team": "user", **GENERATED}, "annotations": {"note": "n"}}
    template["spec"]["nodeSelector"] = {"zone": "z"}
    template["spec"]["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    return document


def lifted() -> Json:
    document = waiting()
    return patched(document, KIND.local_lift_patch(job(document), raw(document), PLACING))


def lifted_without_digest() -> Json:
    """Return one that was let go before marks named their note."""
    document = lifted()
    mark = document["spec"]["template"]["spec"]["tolerations"][-1]
    noted = placed_mark.digest(document["metadata"]["annotations"][NOTE])
    assert f".{noted}." in mark["key"]
    mark["key"] = mark["key"].replace(f".{noted}", "")
    return document


def restored(document: Json, said: str | None) -> Json:
    """Return the template after the annotation was written (None: taken off) and the Job was put back."""
    noted = merged(document, json.dumps({"metadata": {"annotations": {NOTE: said}}}).encode())
    after = patched(noted, template_before.restore_patch(job(noted), raw(noted)))
    assert NOTE not in after["metadata"]["annotations"]
    template: Json = after["spec"]["template"]
    return template


def test_what_was_there_before_comes_back() -> None:
    document = lifted()
    assert restored(document, document["metadata"]["annotations"][NOTE]) == waiting()["spec"]["template"]


@pytest.mark.parametrize("said", [None, "", "[", "[" * 2000, "1", '{"metadata":{"labels":1}}'])
def test_hd_195_what_cannot_be_read_takes_our_marks_away_and_nothing_else(said: str | None) -> None:
    template = restored(lifted(), said)
    assert template["metadata"]["labels"] == {"app": "x", "team": "check", **GENERATED}
    assert template["spec"]["nodeSelector"] == {"zone": "z", "pool": "a"}
    assert [one["key"] for one in template["spec"]["tolerations"]] == ["gpu", "spot"]


@pytest.mark.parametrize("said", ["{}", '{"metadata":{},"spec":{}}', '{"metadata":{"labels":{"job-name":"other"}}}'])
def test_hd_195_what_the_api_server_generated_stays_whatever_is_said(said: str) -> None:
    assert restored(lifted_without_digest(), said)["metadata"]["labels"] == GENERATED


def test_hd_195_a_job_keeps_the_labels_that_it_selects_its_pods_by() -> None:
    document = lifted_without_digest()
    expressions = [{"key": "team", "operator": "In", "values": ["check"]}]
    document["spec"] |= {
        "manualSelector": True,
        "selector": {"matchLabels": {"app": "x"}, "matchExpressions": expressions},
    }
    labels = restored(document, '{"metadata":{"labels":{"team":"other"}}}')["metadata"]["labels"]
    assert labels == {"app": "x", "team": "check", **GENERATED}


@pytest.mark.parametrize(
    ("section", "key", "forged"),
    [
        pytest.param("metadata", "labels", {"a b": "1", "new": "1", "app": "a b", "team": "y" * 64}, id="labels"),
        pytest.param("metadata", "annotations", {"a b": "1", "new": "1"}, id="annotations"),
        pytest.param("spec", "nodeSelector", {"a b": "1", "zone": "?"}, id="selector"),
        pytest.param(
            "spec", "tolerations", [{"key": "gpu", "operator": "?"}, {"key": "?", "value": 1}], id="tolerations"
        ),
    ],
)
def test_hd_195_nothing_is_brought_in_that_does_not_stand_there(section: str, key: str, forged: Json) -> None:
    template = restored(lifted_without_digest(), json.dumps({section: {key: forged}}))
    assert template[section].get(key, {}) == (GENERATED if key == "labels" else {})


@pytest.mark.parametrize("said", ["{}", '{"metadata":{},"spec":{}}', '{"spec":{"tolerations":[{"key":"gpu"}]}}'])
def test_hd_211_what_the_mark_does_not_name_takes_nothing_of_the_users_away(said: str) -> None:
    assert restored(lifted(), said) == restored(lifted(), None)
    assert [one["key"] for one in restored(lifted(), said)["spec"]["tolerations"]] == ["gpu", "spot"]


def test_hd_211_the_mark_of_another_job_names_no_note_of_this_one() -> None:
    document = lifted_without_digest()
    before = document["metadata"]["annotations"][NOTE]
    tolerations = document["spec"]["template"]["spec"]["tolerations"]
    tolerations.append({**tolerations[-1], "key": "home.uid-k.0.placed-as.gatelift.dev/k"})
    assert restored(document, before) == waiting()["spec"]["template"]


def test_hd_211_a_note_on_what_is_put_back_already_takes_nothing_away() -> None:
    assert restored(waiting(), "{}") == waiting()["spec"]["template"]


def test_hd_211_what_is_noted_for_want_of_the_right_note_is_noted_once() -> None:
    document = lifted()
    document["metadata"]["annotations"][NOTE] = "{}"
    assert KIND.local_note(job(document)) == ""
    body = KIND.local_note_patch(job(document), raw(document), "")
    assert body is not None
    again = merged(document, body)
    assert KIND.local_note_patch(job(again), raw(again), "") is None


def test_hd_196_a_job_that_runs_is_known_without_the_note_and_a_copy_of_it_is_not() -> None:
    document = lifted()
    del document["metadata"]["annotations"][NOTE]
    assert template_before.changed(job(document))
    assert KIND.let_go_here(job(document))
    assert KIND.local_hold_step(job(document)) is None
    document["metadata"]["uid"] = "another"
    assert not template_before.changed(job(document))
    assert KIND.lets_itself_go(job(document))
    assert not template_before.changed(job(waiting()))


def test_hd_196_the_note_is_written_again_for_the_version_that_was_seen() -> None:
    document = lifted()
    right = document["metadata"]["annotations"].pop(NOTE)
    body = KIND.local_note_patch(job(document), raw(document), right)
    assert body is not None
    assert json.loads(body)["metadata"] == {"uid": "uid-j", "resourceVersion": "7", "annotations": {NOTE: right}}
    told = KIND.local_note_patch(job(document), raw(document), "")
    assert told is not None
    noted = merged(document, told)
    assert restored(noted, noted["metadata"]["annotations"][NOTE]) == restored(document, None)


def applied(document: Json, places: Json) -> Json:
    """Return what an update makes of a Job whose template says these places, after the webhook."""
    edited = json.loads(json.dumps(document))
    for key in ("nodeSelector", "tolerations"):
        edited["spec"]["template"]["spec"].pop(key, None)
    edited["spec"]["template"]["spec"] |= places
    correction = corrected(document, edited, WebhookFacts())
    assert not correction.warnings
    return patched(edited, json.dumps(correction.operations).encode())


def places(document: Json) -> Json:
    spec = document["spec"]["template"]["spec"]
    return {key: spec[key] for key in ("nodeSelector", "tolerations") if key in spec}


@pytest.mark.parametrize("noted", [True, False])
def test_hd_199_a_manifest_that_is_applied_again_changes_nothing_of_a_job_that_runs(noted: bool) -> None:
    document = waiting()
    placing = PLACING if noted else Placing(key=KEY, origin="home", namespace="ns")
    runs = patched(document, KIND.local_lift_patch(job(document), raw(document), placing))
    if not noted:
        del runs["metadata"]["annotations"][NOTE]
    assert applied(runs, places(document)) == runs
    assert applied(runs, places(runs)) == runs
    only_tolerations = {**places(runs), "tolerations": places(document)["tolerations"]}
    assert applied(runs, only_tolerations) == runs, "kubectl merges selectors and writes lists anew"


@pytest.mark.parametrize(
    "wanted",
    [
        {"tolerations": [{"key": "other", "operator": "Exists"}]},
        {"tolerations": []},
        {"nodeSelector": {"zone": "y"}},
    ],
    ids=["tolerations", "none", "selector"],
)
def test_hd_199_what_else_is_written_is_left_to_the_api_server_to_refuse(wanted: Json) -> None:
    runs = lifted()
    edited = {**places(runs), **wanted}
    assert places(applied(runs, edited)) == edited


def suspending(document: Json, said: Json) -> Json:
    """Return what becomes of a Job whose manifest says these places, and `suspend: true`, after the webhook."""
    edited = merged(document, b'{"spec":{"suspend":true}}')
    for key in ("nodeSelector", "tolerations"):
        edited["spec"]["template"]["spec"].pop(key, None)
    edited["spec"]["template"]["spec"] |= said
    return patched(edited, json.dumps(corrected(document, edited, WebhookFacts()).operations).encode())


def test_hd_222_a_manifest_that_says_suspend_is_taken_as_its_job_runs_and_suspends_it() -> None:
    runs = lifted()
    after = suspending(runs, places(waiting()))
    assert after == merged(runs, b'{"spec":{"suspend":true}}'), "the API server sees no other template"
    note = after["metadata"]["annotations"][NOTE]
    assert restored(after, note) == waiting()["spec"]["template"], "its user's template comes back"
    other = {**places(waiting()), "tolerations": [{"key": "other", "operator": "Exists"}]}
    assert places(suspending(runs, other))["tolerations"] == other["tolerations"], "the API server's to refuse"


def test_hd_222_a_manifest_that_is_applied_again_before_the_template_is_put_back_changes_nothing() -> None:
    stopping = merged(lifted(), b'{"spec":{"suspend":true}}')
    assert suspending(stopping, places(waiting())) == stopping, "the mark is nobody's to take off"
    started = {**stopping, "status": {"startTime": "2026-01-01T00:00:00Z"}}
    only_selector = {**places(stopping), "nodeSelector": places(waiting())["nodeSelector"]}
    assert suspending(started, only_selector) == started, "the API server takes no other selector of what has begun"


def test_hd_199_a_job_that_is_suspended_is_its_users_to_edit() -> None:
    """What the API server and the policies take of it is left as it is written."""
    stopping = merged(lifted(), b'{"spec":{"suspend":true}}')
    only_selector = {**places(stopping), "nodeSelector": places(waiting())["nodeSelector"]}
    assert places(suspending(stopping, only_selector)) == only_selector
    other = {"tolerations": [{"key": "other", "operator": "Exists"}]}
    assert places(suspending(stopping, other)) == other
    waits = merged(waiting(), b'{"status":{"startTime":"2026-01-01T00:00:00Z"}}')
    assert places(suspending(waits, {})) == {}, "nothing of ours is there"


@pytest.mark.parametrize("said", ["main", "mine"])
def test_hd_223_a_pod_sets_label_of_its_users_own_comes_back_as_it_was(said: str) -> None:
    document = waiting()
    document["spec"]["template"]["metadata"]["labels"][POD_SET] = said
    runs = patched(document, KIND.local_lift_patch(job(document), raw(document), PLACING))
    assert runs["spec"]["template"]["metadata"]["labels"][POD_SET] == "main"
    noted = runs["metadata"]["annotations"][NOTE]
    assert restored(runs, noted) == document["spec"]["template"]
    assert POD_SET not in restored(lifted(), lifted()["metadata"]["annotations"][NOTE])["metadata"]["labels"]
    assert POD_SET not in restored(runs, None)["metadata"]["labels"], "nobody knows whose it was"


def test_hd_223_another_pod_sets_label_is_refused_as_a_job_is_queued() -> None:
    facts = WebhookFacts(namespace_selected=True)
    document = a_job(suspend=True)
    labels: Json = document["spec"]["template"]["metadata"]["labels"]
    assert not validate_create(document, facts).errors
    labels[POD_SET] = "main"
    assert not validate_create(document, facts).errors, "what would stand there anyway"
    labels[POD_SET] = "mine"
    errors = validate_create(document, facts).errors
    assert len(errors) == 1
    error = errors[0]
    assert error.path == "spec.template.metadata.labels[kueue.x-k8s.io/podset]"
    assert "leave it out" in error.text
    assert not validate_update(document, document, facts).errors, "what is there is changed as ever"
    del document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
    assert not validate_create(document, facts).errors, "without a queue it is its user's"


def test_hd_199_what_gatelift_writes_is_not_corrected() -> None:
    document, back = lifted(), lifted()
    back["spec"]["template"]["spec"] |= places(waiting())
    assert not corrected(document, back, WebhookFacts(by_agent=True)).operations


def changed_after(document: Json, changes: Json) -> Json:
    """Return a Job that its user has suspended and whose template he has changed since it was let go."""
    return merged(document, json.dumps({"spec": {"suspend": True, "template": changes}}).encode())


def test_hd_214_what_its_user_has_added_since_the_lift_stays_and_what_the_lift_added_goes() -> None:
    document = lifted()
    tolerations = [*places(document)["tolerations"], {"key": "mine", "operator": "Exists"}]
    wanted = {
        "metadata": {"labels": {"mine": "new", "app": "y"}, "annotations": {"note": "other", "mine": "new"}},
        "spec": {"nodeSelector": {"disk": "ssd", "zone": "y"}, "tolerations": tolerations},
    }
    after = restored(changed_after(document, wanted), document["metadata"]["annotations"][NOTE])
    assert after["metadata"]["labels"] == {"app": "y", "team": "user", "mine": "new", **GENERATED}
    assert after["metadata"]["annotations"] == {"note": "other", "mine": "new"}
    assert after["spec"]["nodeSelector"] == {"zone": "y", "disk": "ssd"}
    assert [one["key"] for one in after["spec"]["tolerations"]] == ["gpu", "mine"]


def test_hd_214_what_its_user_has_written_over_or_taken_off_is_his_too() -> None:
    document = lifted()
    wanted = {
        "metadata": {"labels": {"team": "mine", "app": None}, "annotations": {"ticket": "10", "note": None}},
        "spec": {"nodeSelector": {"pool": "b", "zone": None}, "tolerations": None},
    }
    after = restored(changed_after(document, wanted), document["metadata"]["annotations"][NOTE])
    assert after["metadata"]["labels"] == {"team": "mine", **GENERATED}
    assert after["metadata"]["annotations"] == {"ticket": "10"}
    assert after["spec"]["nodeSelector"] == {"pool": "b"}
    assert "tolerations" not in after["spec"]


def test_hd_214_a_note_that_does_not_say_what_was_added_is_read_as_ever() -> None:
    document = lifted_without_digest()
    note = json.loads(document["metadata"]["annotations"][NOTE])
    del note["added"]
    edited = changed_after(document, {"metadata": {"labels": {"mine": "new"}}})
    assert restored(edited, json.dumps(note)) == waiting()["spec"]["template"]


@pytest.mark.parametrize("added", [{}, {"metadata": {"labels": {"app": "x", "a b": "?"}}, "spec": {"tolerations": []}}])
def test_hd_214_what_is_forged_of_it_brings_nothing_in(added: Json) -> None:
    document = lifted_without_digest()
    before = {"metadata": {"labels": {"app": "a b", "new": "1"}}}
    template = restored(document, json.dumps({**before, "added": added}))
    left = {} if added else {"app": "x"}
    assert template["metadata"]["labels"] == {**left, "team": "check", **GENERATED}
    assert template["spec"]["nodeSelector"] == {"zone": "z", "pool": "a"}
