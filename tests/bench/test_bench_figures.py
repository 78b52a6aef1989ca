"""The arithmetic of the benches: what is read from logs and /proc, and how figures are made of it."""

from __future__ import annotations

import json

import pytest
from bench.audit import Request
from bench.loader import Way, manifest, mutated
from bench.processes import Usage, parse_cpu_ticks

from bench import admission_memory, audit, latency, memory

MANAGER = "system:serviceaccount:gatelift-system:gatelift-manager"
AGENT = "system:serviceaccount:gatelift-system:gatelift-agent"


def line(
    user: str, verb: str, resource: str, *, sub: str = "", namespace: str = "bench", code: int = 200, name: str = "p"
) -> bytes:
    ref = {"resource": resource, "subresource": sub, "namespace": namespace, "name": name}
    document = {
        "kind": "Event",
        "verb": verb,
        "user": {"username": user, "groups": ["system:authenticated"]},
        "objectRef": ref,
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
    }
    return json.dumps(document).encode() + b"\n"


def test_an_audit_log_is_counted_by_process_verb_and_resource_with_its_subresource() -> None:
    text = b"".join(
        [
            line(MANAGER, "create", "workloads"),
            line(MANAGER, "patch", "workloads", sub="status"),
            line(MANAGER, "patch", "workloads", sub="status"),
            line("kubernetes-admin", "create", "pods"),
            line("somebody", "get", "pods"),
        ]
    )
    counted = audit.count(audit.parse(text), "bench", own=True)
    assert counted == {
        Request("manager", "create", "workloads"): 1,
        Request("manager", "patch", "workloads/status"): 2,
        Request("loader", "create", "pods"): 1,
        Request("other", "get", "pods"): 1,
    }


def test_objects_of_other_namespaces_are_counted_apart_and_watches_not_at_all() -> None:
    lines = audit.parse(
        line(MANAGER, "patch", "leases", namespace="gatelift-system")
        + line(MANAGER, "patch", "workerclusters", sub="status", namespace="")
        + line(MANAGER, "watch", "pods")
        + line(MANAGER, "patch", "pods")
    )
    assert audit.count(lines, "bench", own=True) == {Request("manager", "patch", "pods"): 1}
    assert audit.count(lines, "bench", own=False) == {
        Request("manager", "patch", "leases"): 1,
        Request("manager", "patch", "workerclusters/status"): 1,
    }


def test_a_line_that_is_still_being_written_is_left_out() -> None:
    whole = line(MANAGER, "patch", "pods")
    assert len(audit.parse(whole + whole[:40])) == 1


def test_a_request_without_an_object_is_read_too() -> None:
    document = {"verb": "get", "user": {"username": MANAGER}}
    (found,) = audit.parse(json.dumps(document).encode() + b"\n")
    assert audit.request_of(found) == Request("manager", "get", "")


def test_refused_requests_are_counted_with_their_code() -> None:
    lines = audit.parse(line(MANAGER, "patch", "pods", code=409) + line(MANAGER, "patch", "pods"))
    assert audit.failed(lines, "bench") == {(Request("manager", "patch", "pods"), 409): 1}


def test_writes_are_compared_with_the_design_status_included_reads_and_others_left_out() -> None:
    own = {
        "mgmt": audit.count(
            audit.parse(
                line(MANAGER, "create", "workloads") * 2
                + line(MANAGER, "patch", "workloads", sub="status") * 4
                + line(MANAGER, "get", "workloads")
                + line("kubernetes-admin", "create", "workloads")
            ),
            "bench",
            own=True,
        ),
        "workers": audit.count(audit.parse(line(AGENT, "create", "pods") * 3), "bench", own=True),
    }
    expected = {("mgmt", "workloads"): 3, ("workers", "pods"): 4}
    assert audit.against(own, expected, 2) == {
        "mgmt workloads": {"wanted": 3, "found": 3.0},
        "workers pods": {"wanted": 4, "found": 1.5},
    }
    assert "loader create workloads" not in audit.per_workload(own, 2)["mgmt"]


def test_requests_for_other_objects_are_given_a_second_for_our_processes_only() -> None:
    rest = {"mgmt": audit.count(audit.parse(line(MANAGER, "patch", "leases", namespace="x") * 5), "bench", own=False)}
    rest["mgmt"][Request("scheduler", "patch", "leases")] = 9
    assert audit.others(rest, 10.0) == {"mgmt manager patch leases": 0.5}


def test_cpu_ticks_are_read_whatever_the_command_is_called() -> None:
    fields = ["S", "1", "2", "3", "0", "-1", "0", "0", "0", "0", "0", "120", "30", "7", "8"]
    assert parse_cpu_ticks("77 (a (b) c) " + " ".join(fields)) == 150


def test_usage_counts_only_processes_that_lived_all_the_time() -> None:
    before = Usage({"manager": 1.0, "mgmt/etcd": 2.0})
    after = Usage({"manager": 1.5, "mgmt/etcd": 2.25, "late": 9.0})
    used = after.since(before)
    assert used.seconds == {"manager": 0.5, "mgmt/etcd": 0.25}
    assert used.total == 0.75


def test_usage_of_a_process_is_summed_over_clusters_and_not_mixed_with_longer_names() -> None:
    used = Usage({"manager": 1.0, "mgmt/kube-controller-manager": 5.0, "mgmt/etcd": 0.5, "w1/etcd": 0.25})
    assert used.of("manager") == 1.0
    assert used.of("etcd") == 0.75


@pytest.mark.parametrize(
    ("values", "share", "found"),
    [([1.0], 0.99, 1.0), ([3.0, 1.0, 2.0], 0.5, 2.0), (list(range(1, 101)), 0.99, 99), (list(range(1, 61)), 0.99, 60)],
)
def test_a_percentile_is_the_nearest_rank(values: list[float], share: float, found: float) -> None:
    assert latency.percentile(values, share) == found


def way(**seen: float) -> Way:
    return Way(seen=dict(seen))


def test_steps_are_in_milliseconds_and_never_negative() -> None:
    full = way(
        created=1.0,
        workload=1.01,
        reserved=1.02,
        admitted=1.05,
        lifted=1.04,
        over=2.0,
        mirrored=2.1,
        finished=2.2,
        released=2.25,
        removed=2.3,
    )
    steps = latency.steps([full])
    assert steps["created_to_lifted"] == [pytest.approx(40.0)]
    assert steps["admitted_to_lifted"] == [0.0], "the worker's watch was faster than the management cluster's"
    assert steps["over_to_cleaned_up"] == [pytest.approx(300.0)]


def test_a_release_is_from_an_end_to_the_next_reservation_whatever_order_the_ways_are_in() -> None:
    ways = [way(reserved=5.0, over=6.0), way(reserved=1.0, over=2.0), way(reserved=2.5, over=4.9)]
    assert latency.releases(ways) == [pytest.approx(500.0), pytest.approx(100.0)]


def test_a_way_is_done_when_the_workload_the_users_pod_and_the_workers_pod_are() -> None:
    assert not way(finished=1.0, released=1.0).done
    assert way(finished=1.0, released=1.0, removed=1.0).done


def test_memory_is_scaled_to_ten_thousand_objects() -> None:
    assert memory.per_ten_thousand(5_000_000, 1_000) == 50.0


def test_a_mutated_pod_is_gated_labelled_and_held_as_by_the_webhook() -> None:
    pod = mutated(manifest("p"))
    assert pod["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]
    assert pod["metadata"]["labels"]["kueue.x-k8s.io/managed"] == "true"
    assert pod["metadata"]["finalizers"] == ["kueue.x-k8s.io/managed"]


def test_a_placed_pod_carries_the_agents_labels_and_finalizer() -> None:
    pod = json.loads(memory.placed_pod(7))
    assert pod["metadata"]["labels"]["gatelift.dev/workload-uid"].endswith("7")
    assert pod["metadata"]["finalizers"] == ["gatelift.dev/report"]
    assert pod["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]


def test_instructions_are_compared_run_by_run_without_what_was_there_before(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {("baseline", ""): 11_000_000, ("baseline", "old"): 21_000_000, ("growth", ""): 6_000_000}
    counts |= {("growth", "old"): 5_000_000}
    asked: list[tuple[str, str]] = []

    def count(part: str, folder: str, *, compiled: bool) -> int:
        asked.append((part, folder))
        return counts.get((part, folder), 1_000_000) + compiled * 0

    monkeypatch.setattr(admission_memory, "count", count)
    assert dict(admission_memory.instructions(2, "old")) == {
        "instructions_baseline_millions": 10.0,
        "instructions_baseline_ratio": 0.5,
        "instructions_growth_millions": 5.0,
        "instructions_growth_ratio": 1.25,
    }
    assert [folder for part, folder in asked if part == "baseline"] == ["", "old", "", "old"]
    assert set(admission_memory.COUNTED.values()) == {part for part, folder in asked} - set(admission_memory.COUNTED)
