"""`gatelift get` and `gatelift cluster` against a fake API server: what is printed, and how failures end."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
import yaml

from gatelift.cli.leader import absent_by
from gatelift.core.clusters.identity import ANNOTATION_RESTORED_ACCEPTED
from gatelift_kube.objects.core import Lease, LeaseSpec
from gatelift_kube.values.resources import CONFIG_MAP, LEASE, WORKER_CLUSTER, WORKLOAD
from support.manager.cli_stage import Stage, admitted, condition, say
from support.servers.fake_apiserver import status_of

NO_QUOTA = "couldn't assign flavors to pod set main: insufficient quota"


def test_workloads_show_where_they_are_and_why_they_wait(stage: Stage) -> None:
    stage.workload("placed", status=admitted("worker-1"))
    stage.workload("waiting", status={"conditions": [condition("QuotaReserved", "False", "ExceedsMaxQuota", NO_QUOTA)]})
    said = stage.run("get", "workloads")
    assert said.code == 0
    header, placed, waiting = said.out.splitlines()
    assert " ".join(header.split()) == "NAMESPACE NAME STATE CLUSTER QUEUE PODS AGE REASON FOR EPOCH MESSAGE"
    assert placed.split()[:5] == ["team", "pod-placed", "Admitted", "worker-1", "main"]
    assert "pod/waiting" in waiting
    assert waiting.endswith(NO_QUOTA)


def test_workloads_as_json_have_the_columns_as_keys(stage: Stage) -> None:
    stage.workload("placed", status=admitted("worker-1", epoch=4), annotations={"gatelift.dev/epoch": "5"})
    (found,) = json.loads(stage.run("get", "workloads", "-o", "json").out)
    assert {key: found[key] for key in ("name", "state", "cluster", "epoch", "for")} == {
        "name": "pod-placed",
        "state": "Admitted",
        "cluster": "worker-1",
        "epoch": 4,
        "for": "pod/placed",
    }


def test_a_namespace_narrows_the_list_at_the_server(stage: Stage) -> None:
    stage.run("get", "workloads", "-n", "team")
    stage.run("get", "workloads")
    asked = [seen.path for seen in stage.server.seen if seen.path.endswith("/workloads")]
    assert asked == [WORKLOAD.path("team"), WORKLOAD.path()]


@pytest.mark.parametrize(
    ("conditions", "state", "reason"),
    [
        ([], "Pending", ""),
        ([condition("QuotaReserved", "False", "Pending")], "Pending", "Pending"),
        ([condition("QuotaReserved", "True", "QuotaReserved")], "QuotaReserved", ""),
        ([condition("QuotaReserved", "True", "Q"), condition("Admitted", "True", "A")], "Admitted", ""),
        ([condition("Admitted", "True", "A"), condition("Evicted", "True", "Deactivated")], "Evicted", "Deactivated"),
        ([condition("Evicted", "True", "E"), condition("Finished", "True", "Failed")], "Finished", "Failed"),
    ],
)
def test_the_state_is_the_furthest_condition_that_holds(
    stage: Stage, conditions: list[object], state: str, reason: str
) -> None:
    stage.workload("one", status={"conditions": conditions})
    (found,) = json.loads(stage.run("get", "workloads", "-o", "json").out)
    assert (found["state"], found["reason"]) == (state, reason)


def test_placements_are_only_what_is_placed_and_not_over(stage: Stage) -> None:
    stage.workload("placed", status=admitted("worker-1"))
    over = admitted("worker-2")
    over["conditions"].append(condition("Finished", "True", "Succeeded"))
    stage.workload("over", status=over)
    stage.workload("waiting")
    (found,) = json.loads(stage.run("get", "placements", "-o", "json").out)
    assert found == {
        "cluster": "worker-1",
        "namespace": "team",
        "name": "pod-placed",
        "epoch": 1,
        "pods": 2,
        "madethere": "",
        "policy": "wait",
        "term": 3,
        "state": "placed",
    }


def test_a_queue_that_takes_nothing_says_its_problem(stage: Stage) -> None:
    stage.local_queue("main", "Can't submit new workloads to clusterQueue")
    (found,) = json.loads(stage.run("get", "queues", "-o", "json").out)
    assert (found["name"], found["clusterqueue"], found["pending"]) == ("team/main", "all", 2)
    assert found["problem"] == "Can't submit new workloads to clusterQueue"


def test_a_long_list_is_read_page_by_page(stage: Stage) -> None:
    for number in range(1100):
        stage.workload(f"n{number}")
    assert len(json.loads(stage.run("get", "workloads", "-o", "json").out)) == 1100
    assert len([seen for seen in stage.server.seen if seen.path.endswith("/workloads")]) > 1


def test_clusters_show_their_session_and_what_they_wait_for(stage: Stage) -> None:
    stage.server.put(
        WORKER_CLUSTER,
        "worker-1",
        spec={"cordoned": True, "tokenDigest": "t"},
        status={
            "session": 3,
            "placements": 2,
            "agentVersion": "1.2.3",
            "certificateIssuedAt": "2999-01-01T00:00:00Z",
            "conditions": [condition("Connected", "True", "Connected")],
            "enrolment": {"keyDigest": "k", "tokenDigest": "t"},
        },
    )
    (found,) = yaml.safe_load(stage.run("cluster", "list", "-o", "yaml").out)
    assert (found["state"], found["session"], found["placements"], found["agent"]) == ("Connected", 3, 2, "1.2.3")
    assert found["notes"] == ["cordoned", "waits for approval (key k)"]
    assert found["certificate_issued_at"] == "2999-01-01T00:00:00Z"
    assert "0s" in stage.run("cluster", "list").out.split(), "issued in the future by this clock"
    assert stage.run("get", "clusters", "-o", "yaml").out == stage.run("cluster", "list", "-o", "yaml").out


def test_hd_60_clusters_show_a_second_agent_and_one_that_took_over(stage: Stage) -> None:
    beside = [condition("Connected", "True", "Connected"), condition("SecondAgent", "True", "TurnedAway")]
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={}, status={"session": 3, "conditions": beside})
    stage.server.put(
        WORKER_CLUSTER, "worker-2", spec={}, status={"session": 9, "takenOverSession": 8, "settledSession": 7}
    )
    first, second = yaml.safe_load(stage.run("cluster", "list", "-o", "yaml").out)
    assert (first["notes"], second["notes"]) == (["second agent"], ["taken over"])


@pytest.mark.parametrize("doubt", ["restored", "replaced", "takenOver"])
def test_hd_353_a_cluster_in_doubt_that_takes_new_work_by_a_persons_word_says_both(stage: Stage, doubt: str) -> None:
    """HD-353: the doubt was shown no more, though what is charged there was as unknown as before."""
    accepted = {"annotations": {ANNOTATION_RESTORED_ACCEPTED: "8"}}
    word = {"takenOver": "taken over"}.get(doubt, doubt)
    for session, settled, notes in ((8, 7, [f"{word} (takes new work)"]), (9, 7, [word]), (8, 8, [])):
        status = {"session": 9, f"{doubt}Session": session, "settledSession": settled}
        stage.server.put(WORKER_CLUSTER, "worker-1", metadata=accepted, spec={}, status=status)
        (found,) = yaml.safe_load(stage.run("cluster", "list", "-o", "yaml").out)
        assert found["notes"] == notes


@pytest.mark.parametrize(("status", "notes"), [("True", "no new work (EpochAhead)"), ("False", "")])
def test_hd_181_clusters_show_why_the_manager_itself_keeps_new_work_from_them(
    stage: Stage, status: str, notes: str
) -> None:
    said = [condition("NoNewWork", status, "EpochAhead" if notes else "None", "It names epoch 2")]
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={}, status={"session": 3, "conditions": said})
    (found,) = yaml.safe_load(stage.run("cluster", "list", "-o", "yaml").out)
    assert found["notes"] == ([notes] if notes else [])


def test_no_workloads_says_where_none_are_and_how_to_make_one(stage: Stage) -> None:
    assert stage.run("get", "workloads").out.startswith("No workloads. Label a pod or a Job with kueue.x-k8s.io/queue")
    assert stage.run("get", "workloads", "-n", "nix").out.startswith("No workloads in namespace nix. Label a pod")


def test_no_clusters_says_how_to_take_one_in(stage: Stage) -> None:
    assert "gatelift cluster add NAME" in stage.run("get", "clusters").out


def test_adding_a_cluster_prints_its_token_and_the_steps(stage: Stage) -> None:
    stage.server.put(CONFIG_MAP, "gatelift-ca", "gatelift-system", data={"ca.crt": "PEM"})
    said = stage.run("cluster", "add", "worker-1", "--manager", "m.example:7443")
    assert said.code == 0
    made = stage.server.find(WORKER_CLUSTER, "worker-1")
    assert made is not None
    token = next(word for word in said.out.split() if word.startswith("gl1.worker-1."))
    assert token not in json.dumps(made), "only the digest of a token is kept"
    for step in ("deploy/overlays/worker", "gatelift-agent-bootstrap", "m.example:7443", "cluster approve worker-1"):
        assert step in said.out
    assert "For <host> write where agents reach the manager." in said.out, "one of the two addresses is not known"
    both = stage.run("cluster", "add", "worker-1", "--manager", "m.example:7443", "--enrol", "m.example:7444")
    assert "<host>" not in both.out


def test_adding_a_cluster_says_where_the_manager_is_and_how_long_the_token_lasts_as_the_manager_says(
    stage: Stage,
) -> None:
    told = {"ca.crt": "PEM", "manager": "m.example:443", "enrol": "m.example:444", "tokenSeconds": "7200"}
    stage.server.put(CONFIG_MAP, "gatelift-ca", "gatelift-system", data=told)
    said = stage.run("cluster", "add", "worker-1").out
    assert "GATELIFT_AGENT_MANAGER=m.example:443 " in said
    assert "GATELIFT_AGENT_ENROL=m.example:444" in said
    assert "for 2 hours" in said
    assert "GATELIFT_AGENT_MANAGER=other:1 " in stage.run("cluster", "add", "worker-2", "--manager", "other:1").out
    made = stage.server.find(WORKER_CLUSTER, "worker-1")
    assert made is not None
    expires = dt.datetime.fromisoformat(made["spec"]["tokenExpiresAt"])
    assert dt.timedelta(minutes=115) < expires - dt.datetime.now(dt.UTC) <= dt.timedelta(hours=2)


def test_the_token_alone_is_for_scripts(stage: Stage) -> None:
    stage.server.put(CONFIG_MAP, "gatelift-ca", "gatelift-system", data={"ca.crt": "PEM"})
    assert stage.run("cluster", "add", "worker-1", "--token-only").out.count("\n") == 1


def test_cordoning_is_a_write_to_the_object(stage: Stage) -> None:
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={})
    assert stage.run("cluster", "cordon", "worker-1").code == 0
    found = stage.server.find(WORKER_CLUSTER, "worker-1")
    assert found is not None
    assert found["spec"]["cordoned"] is True
    assert "takes new work again" in stage.run("cluster", "cordon", "worker-1", "--off").out


def test_uncordoning_a_restored_worker_says_that_a_person_has_looked(stage: Stage) -> None:
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={}, status={"restoredSession": 7})
    assert "restored" in stage.run("cluster", "list").out
    assert stage.run("cluster", "cordon", "worker-1", "--off").code == 0
    found = stage.server.find(WORKER_CLUSTER, "worker-1")
    assert found is not None
    assert found["metadata"]["annotations"]["gatelift.dev/restored-accepted"] == "7"
    assert "restored (takes new work)" in stage.run("cluster", "list").out


def test_hd_35_what_another_management_cluster_left_is_listed_and_let_go_by_a_word(stage: Stage) -> None:
    run = {"origin": "former", "kind": "Job", "namespace": "team", "name": "one", "count": 2}
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={}, status={"foreign": [run]})
    assert "foreign (2)" in stage.run("cluster", "list").out
    said = stage.run("cluster", "foreign", "worker-1")
    assert (said.code, "one" in said.out, "former" in said.out) == (0, True, True)
    found = stage.server.find(WORKER_CLUSTER, "worker-1")
    assert found is not None
    assert "annotations" not in found["metadata"]
    assert stage.run("cluster", "foreign", "worker-1", "--ignore").code == 0
    found = stage.server.find(WORKER_CLUSTER, "worker-1")
    assert found is not None
    assert found["metadata"]["annotations"] == {"gatelift.dev/foreign-ignored": "former"}
    assert "foreign" not in stage.run("cluster", "list").out


def test_hd_111_a_worker_that_is_not_believed_is_let_go_as_a_whole(stage: Stage) -> None:
    runs = [{"origin": f"former-{number}", "count": 1} for number in range(17)]
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={}, status={"foreign": runs})
    refused = stage.run("cluster", "foreign", "worker-1", "--ignore")
    assert refused.code != 0
    assert "--ignore-all" in refused.err
    assert stage.run("cluster", "foreign", "worker-1", "--ignore-all").code == 0
    found = stage.server.find(WORKER_CLUSTER, "worker-1")
    assert found is not None
    assert found["metadata"]["annotations"] == {"gatelift.dev/foreign-ignored": "*"}
    assert "foreign" not in stage.run("cluster", "list").out


LOST = condition("Connected", "False", "Lost")


def test_a_word_that_was_taken_before_is_not_written_again(stage: Stage) -> None:
    taken = {"session": 7, "fencedThroughSession": 7, "fencedBy": "ada", "conditions": [LOST]}
    before = stage.server.put(WORKER_CLUSTER, "worker-1", spec={}, status=taken)
    said = stage.run("cluster", "fenced", "worker-1")
    assert (said.code, said.err) == (0, "")
    assert "fenced through session 7, says ada" in said.out
    assert stage.server.find(WORKER_CLUSTER, "worker-1") == before


@pytest.mark.parametrize(
    ("conditions", "shown"),
    [
        ([condition("Connected", "True", "Connected")], "shown as Connected"),
        ([condition("Connected", "Unknown", "NoSession")], "shown as NoSession"),
        ([], "never connected"),
    ],
)
def test_a_cluster_that_is_not_lost_is_not_declared_fenced(stage: Stage, conditions: list[Any], shown: str) -> None:
    before = stage.server.put(WORKER_CLUSTER, "worker-1", spec={}, status={"session": 7, "conditions": conditions})
    said = stage.run("cluster", "fenced", "worker-1")
    assert said.code == 1
    assert f"not lost ({shown})" in said.line
    assert stage.server.find(WORKER_CLUSTER, "worker-1") == before


def test_a_cluster_that_comes_back_at_that_moment_is_not_declared_fenced(stage: Stage) -> None:
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={}, status={"session": 7, "conditions": [LOST]})
    gone_on = {"kind": "Status", "status": "Failure", "reason": "Conflict", "message": "it was modified", "code": 409}
    stage.server.fault("PATCH", "workerclusters", status=409, body=gone_on)
    assert stage.run("cluster", "fenced", "worker-1").code == 1
    (asked,) = stage.server.asked("PATCH", "workerclusters")
    assert "resourceVersion" in json.loads(asked.body)["metadata"]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("cluster", "cordon", "nope"), 3, "no WorkerCluster nope: "),
        (("cluster", "fenced", "nope"), 3, "no WorkerCluster nope: "),
        (("cluster", "approve", "nope"), 3, "no WorkerCluster nope: "),
        (("cluster", "remove", "local"), 2, "'local' is the management cluster itself"),
        (("cluster", "add", "local"), 2, "'local' is the management cluster itself"),
        (("cluster", "add", "Not_A_Name"), 2, "Not_A_Name"),
        (("cluster", "add", "fresh"), 3, "start the manager, then add clusters"),
        (("explain", "nix"), 3, "'gatelift get workloads' lists those of all namespaces (-n chooses one)"),
        (("explain", "job/nix"), 3, "no workload default/nix, and none made for a job of that name: "),
    ],
)
def test_what_a_person_can_mend_is_one_line_and_an_exit_code(
    stage: Stage, arguments: tuple[str, ...], code: int, text: str
) -> None:
    said = stage.run(*arguments)
    assert (said.code, said.out) == (code, "")
    assert said.line.startswith("gatelift: ")
    assert text in said.line


def test_an_agent_that_has_not_asked_cannot_be_approved(stage: Stage) -> None:
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={})
    said = stage.run("cluster", "approve", "worker-1")
    assert said.code == 1
    assert "has not asked for a certificate yet" in said.line


def test_a_revoked_cluster_is_not_approved_but_added_again(stage: Stage) -> None:
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={"revoked": True})
    said = stage.run("cluster", "approve", "worker-1")
    assert said.code == 1
    assert "worker-1: is revoked; 'gatelift cluster add worker-1' takes it in again" in said.line


@pytest.mark.parametrize("body", [None, status_of(404, "NotFound", "the server could not find the requested resource")])
@pytest.mark.parametrize("verb", [("get", "workloads"), ("get", "clusters"), ("cluster", "approve", "worker-1")])
def test_an_api_server_without_our_kinds_is_named_as_such(
    stage: Stage, verb: tuple[str, ...], body: dict[str, Any] | None
) -> None:
    for kind in ("workloads", "workerclusters"):
        stage.server.fault("GET", kind, status=404, body=body)
    said = stage.run(*verb)
    assert said.code == 3
    assert said.line.startswith("gatelift: this API server does not serve Gatelift's kinds: is it the management")


def test_who_is_not_known_is_told_to_renew_the_credential(stage: Stage) -> None:
    refusal = status_of(401, "Unauthorized", "Unauthorized")
    stage.server.fault("GET", "workloads", times=9, status=401, body=refusal)
    said = stage.run("get", "workloads")
    assert said.code == 4
    assert "renew the user's credential in the kubeconfig" in said.line


def test_what_is_not_allowed_says_so(stage: Stage) -> None:
    stage.server.fault("GET", "workloads", status=403, body=status_of(403, "Forbidden", "you may not list workloads"))
    said = stage.run("get", "workloads")
    assert said.code == 4
    assert "you may not list workloads" in said.line


def test_a_list_that_is_no_list_is_one_line(stage: Stage) -> None:
    stage.server.fault("GET", WORKLOAD.plural, status=200, body={"kind": "WorkloadList", "items": 5})
    said = stage.run("get", "workloads")
    assert said.code == 4
    assert said.line.startswith("gatelift: ")


def test_a_kubeconfig_that_is_not_there_is_named() -> None:
    said = say("--kubeconfig", "/nowhere/config", "get", "workloads")
    assert said.code == 2
    assert "/nowhere/config" in said.line


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "pods"),
        ("get", "workloads", "-o", "xml"),
        ("explain",),
        ("up", "--workers", "0"),
        ("up", "--workers", "9"),
        ("demo", "--provider", "cloud"),
    ],
)
def test_wrong_use_is_exit_code_2_without_a_stack_trace(arguments: tuple[str, ...]) -> None:
    said = say(*arguments)
    assert said.code == 2
    assert "Error: " in said.err
    assert "Traceback" not in said.err


def test_every_verb_has_a_line_of_help() -> None:
    said = say("--help")
    assert said.code == 0
    for verb in ("demo", "up", "down", "manager", "agent", "webhooks", "get", "explain", "cluster", "ca", "version"):
        assert any(line.split()[:1] == [verb] and len(line.split()) > 3 for line in said.out.splitlines()), verb


def test_is_1_an_epoch_of_5000_digits_is_shown_as_what_it_is_and_spoils_no_other_line(stage: Stage) -> None:
    stage.workload("hostile", annotations={"gatelift.dev/epoch": "9" * 5000})
    stage.workload("placed", status=admitted("worker-1"), annotations={"gatelift.dev/epoch": "\u00b2"})
    said = stage.run("get", "workloads", "-o", "json")
    hostile, placed = json.loads(said.out)
    assert (hostile["name"], hostile["epoch"]) == ("pod-hostile", 1)
    assert hostile["message"].startswith("metadata.annotations[gatelift.dev/epoch]: is no number of an attempt (5000")
    assert (placed["cluster"], placed["epoch"]) == ("worker-1", 1)
    assert said.err == ""


@pytest.mark.parametrize("away", ["renewed long ago", "given back", "deleted"])
def test_is_1_who_is_connected_is_not_said_when_no_manager_leads(stage: Stage, away: str) -> None:
    conditions = [condition("Connected", "True", "Connected")]
    stage.server.put(WORKER_CLUSTER, "worker-1", status={"session": 3, "conditions": conditions})
    stage.server.put(WORKER_CLUSTER, "worker-2", status={"conditions": [condition("Connected", "False", "Lost")]})
    if away == "deleted":
        stage.server.remove(LEASE, "gatelift-manager", "gatelift-system")
    else:
        holder = "" if away == "given back" else "manager-1"
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
        stage.server.put(LEASE, "gatelift-manager", "gatelift-system", spec=spec)
    said = stage.run("cluster", "list", "-o", "json")
    assert [each["state"] for each in json.loads(said.out)] == ["Unknown", "Lost"]
    assert said.line.startswith("gatelift: no manager leads (Lease gatelift-system/gatelift-manager: ")
    assert "kubectl -n gatelift-system logs" in said.line
    for verb in (("get", "workloads"), ("get", "placements"), ("get", "queues")):
        assert stage.run(*verb).line == said.line


def test_is_1_who_may_not_read_the_lease_is_told_nothing_of_it(stage: Stage) -> None:
    conditions = [condition("Connected", "True", "Connected")]
    stage.server.put(WORKER_CLUSTER, "worker-1", status={"conditions": conditions})
    stage.server.fault("GET", "/leases/", status=403, body=status_of(403, "Forbidden", "no"))
    said = stage.run("cluster", "list", "-o", "json")
    assert (json.loads(said.out)[0]["state"], said.err) == ("Connected", "")


def test_is_1_a_lease_that_ran_out_a_moment_ago_may_be_a_difference_of_clocks() -> None:
    spec = LeaseSpec(holder_identity="m", lease_duration_seconds=15, renew_time="2026-01-01T00:00:00.000000Z")
    renewed = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    assert absent_by(Lease(spec=spec), renewed + dt.timedelta(seconds=44)) == ""
    assert "m renewed it 46s ago" in absent_by(Lease(spec=spec), renewed + dt.timedelta(seconds=46))
