"""What people get wrong, and the one line they see: field, rule, way out. One row a mistake, through the real code."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from gatelift_kube.resources import CONFIG_MAP, SECRET, WORKER_CLUSTER
from gatelift_wire import limits, tokens
from gatelift_wire.keys import PlacementKey
from gatelift_wire.messages import CountsReport, CreditGrant, Frame, GatesLifted, LeaseRenew, ObjectReport, PodSetCounts
from support.bad_input import (
    CA,
    TOKEN,
    against,
    agent_file,
    changed,
    cluster_queue,
    cohort,
    command,
    enrolment,
    environment,
    flavor,
    job,
    kubeconfig,
    local_queue,
    manager_file,
    pod,
    wire,
    workload,
)
from support.fake_apiserver import FakeApiServer, status_of


class Case(NamedTuple):
    """A mistake in a sentence, the door it comes in by, what comes, what is said."""

    mistake: str
    door: Callable[[Any], str]
    comes: Any
    said: str


KEY = PlacementKey("uid", 1)
NAME_RULE = "at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part"
DNS_LABEL = (
    "must be a DNS label (a-z, 0-9 and -, at most 63 characters, beginning and ending with a letter or digit); "
    "choose another name"
)
QUANTITY = "is not a quantity: write a number with an optional suffix, as 500m or 2Gi"


def report(*messages: Any, **parts: Any) -> Frame:
    """Make a frame of an agent."""
    return Frame(session=1, sequence=1, messages=messages, **parts)


# --- API servers as a command line may find them -------------------------------------------------------------------


def empty(_: FakeApiServer) -> None:
    """Have an API server without any objects of ours."""


def forbids(server: FakeApiServer) -> None:
    """Have an API server where this user may not list."""
    server.fault("GET", "/", times=9, status=403, body=status_of(403, "Forbidden", 'User "ada" cannot list resource'))


def expects_w1(server: FakeApiServer) -> None:
    """Have a cluster whose agent has not asked yet."""
    server.put(WORKER_CLUSTER, "w1", spec={}, status={})


def revokes_w1(server: FakeApiServer) -> None:
    """Have a revoked cluster of which no manager has taken note."""
    server.put(WORKER_CLUSTER, "w1", spec={"revoked": True}, status={"keyDigest": "k"})
    server.put(CONFIG_MAP, "gatelift-ca", "gatelift-system", data={"ca.crt": CA.decode()})


def broken_authority(server: FakeApiServer) -> None:
    """Have a Secret that somebody has edited."""
    server.put(SECRET, "gatelift-ca", "gatelift-system", data={"ca.crt": "eA=="})


# --- the table -----------------------------------------------------------------------------------------------------

CONFIGURATION = [
    Case(
        "a key that does not exist",
        manager_file,
        "gatelift: {dispach: {}}",
        "gatelift.dispach: is no key of the configuration; remove it or mend its spelling",
    ),
    Case(
        "a file that is not YAML",
        manager_file,
        "a: [1",
        "FILE line 1: is not YAML; mend the syntax there",
    ),
    Case(
        "a list where settings belong",
        manager_file,
        "- a",
        "FILE: holds a list, a mapping of settings is needed",
    ),
    Case(
        "a duration in words",
        manager_file,
        "gatelift: {leases: {renew: 5 seconds}}",
        "gatelift.leases.renew: '5 seconds' is not a duration: write it like 30s, 15m or 1h30m",
    ),
    Case(
        "a duration below zero",
        manager_file,
        "gatelift: {leases: {renew: -5s}}",
        "gatelift.leases.renew: '-5s' is negative: a duration is 0 or more",
    ),
    Case(
        "leases that are renewed later than they are missed",
        manager_file,
        "gatelift: {leases: {renew: 1m}}",
        "gatelift.leases.renew: must be below 15 (found 60)",
    ),
    Case(
        "a number where it is too small",
        manager_file,
        "gatelift: {dispatch: {offersAtOnce: 0}}",
        "gatelift.dispatch.offersAtOnce: must be at least 1 (found 0)",
    ),
    Case(
        "a word where a number belongs",
        manager_file,
        "gatelift: {dispatch: {offersAtOnce: many}}",
        "gatelift.dispatch.offersAtOnce: must be a whole number (found 'many')",
    ),
    Case(
        "a word where a switch belongs",
        manager_file,
        "featureGates: {PartialAdmission: maybe}",
        "featureGates.PartialAdmission: must be true or false (found 'maybe')",
    ),
    Case(
        "leader election switched off",
        manager_file,
        "leaderElection: {leaderElect: false}",
        "leaderElection.leaderElect: must be true (found False)",
    ),
    Case(
        "a Lease that runs out before it is renewed",
        manager_file,
        "leaderElection: {leaseDuration: 1s}",
        (
            "leaderElection: leaseDuration must be above renewDeadline, and that above twice retryPeriod; "
            "found 1, 10 and 2 seconds"
        ),
    ),
    Case(
        "a file of another kind",
        manager_file,
        "kind: ConfigMap",
        "kind: must be 'Configuration' (found 'ConfigMap')",
    ),
    Case(
        "an address without a port",
        manager_file,
        "gatelift: {listen: nowhere}",
        "gatelift.listen: 'nowhere' is no address; write host:port",
    ),
    Case(
        "a dispatcher that does not exist",
        manager_file,
        "multiKueue: {dispatcherName: best}",
        (
            "multiKueue.dispatcherName: must be one of scored, kueue.x-k8s.io/multikueue-dispatcher-all-at-once, "
            "kueue.x-k8s.io/multikueue-dispatcher-incremental, or domain/name of a controller of your own "
            "(found 'best')"
        ),
    ),
    Case(
        "certificates that end at once",
        manager_file,
        "gatelift: {certificates: {lifetime: 0s}}",
        "gatelift.certificates.lifetime: must be at least 60 (found 0)",
    ),
    Case(
        "a server name that is none",
        manager_file,
        "gatelift: {certificates: {serverNames: ['my host']}}",
        (
            "gatelift.certificates.serverNames: 'my host' is no host name or address; "
            "write what agents dial, without the port"
        ),
    ),
    Case(
        "a setting of the environment of the wrong type",
        environment,
        "GATELIFT_DISPATCH__OFFERS_AT_ONCE=none",
        "gatelift.dispatch.offersAtOnce: must be a whole number (found 'none')",
    ),
    Case(
        "a whole section in the environment that is not JSON",
        environment,
        "GATELIFT_DISPATCH=x",
        "GATELIFT_DISPATCH: is not JSON; set single values instead, as GATELIFT_DISPATCH__KEY=value",
    ),
    Case(
        "an agent that is named like no cluster can be",
        agent_file,
        "cluster: Bad_Name",
        f"cluster: cluster name 'Bad_Name': {DNS_LABEL}",
    ),
    Case(
        "an agent's token that was cut while copying",
        agent_file,
        "token: gl1.w1.00",
        "token: is not one of ours; copy it whole from 'gatelift cluster add NAME' (found 'gl1.w1.00')",
    ),
    Case(
        "a kind that no agent serves",
        agent_file,
        "kinds: [Deployment]",
        "kinds: 'Deployment' is not served; known are Pod, Job",
    ),
    Case(
        "an agent's capacity in words",
        agent_file,
        "capacity: [{flavor: f, resource: cpu, nominal: lots}]",
        f"capacity.0.nominal: 'lots' {QUANTITY}",
    ),
    Case(
        "a proxy that speaks another protocol",
        agent_file,
        "proxy: socks5://p:1080",
        "proxy: 'socks5://p:1080' is no HTTP proxy; write http://host:port",
    ),
]

MANIFESTS = [
    Case(
        "a pod whose queue has no name that can be",
        pod,
        "metadata: {labels: {kueue.x-k8s.io/queue-name: My Queue}}",
        (
            'metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: "My Queue": must be a DNS subdomain: '
            + NAME_RULE
        ),
    ),
    Case(
        "a pod that is managed only half",
        pod,
        'metadata: {labels: {kueue.x-k8s.io/managed: "false"}}',
        "metadata.labels[kueue.x-k8s.io/managed]: Forbidden: may only be `true`: leave it out, the webhook sets it",
    ),
    Case(
        "an elastic pod",
        pod,
        'metadata: {annotations: {kueue.x-k8s.io/elastic-job: "true"}}',
        (
            "metadata.annotations[kueue.x-k8s.io/elastic-job]: Forbidden: is not supported for pods: "
            "use it on a Job or a RayCluster"
        ),
    ),
    Case(
        "a pod with a time limit in words",
        pod,
        "metadata: {labels: {kueue.x-k8s.io/max-exec-time-seconds: soon}}",
        (
            'metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]: Invalid value: "soon": '
            "must be a whole number of seconds above 0"
        ),
    ),
    Case(
        "an admission gate without a domain",
        pod,
        "metadata: {annotations: {kueue.x-k8s.io/admission-gated-by: budget}}",
        (
            'metadata.annotations[kueue.x-k8s.io/admission-gated-by]: Invalid value: "budget": '
            "must be domain/path without spaces, at most 63 characters"
        ),
    ),
    Case(
        "labels that are numbers",
        pod,
        "metadata: {labels: {a: 1}}",
        (
            "Pod: Invalid value: Expected `str`, got `int` - at `$.metadata.labels[...]`: "
            "give the field the type that the API says"
        ),
    ),
    Case(
        "a Job that may shrink to more than it has",
        job,
        """
        metadata: {annotations: {kueue.x-k8s.io/job-min-parallelism: "9"}}
        spec: {parallelism: 3, suspend: true}
        """,
        (
            'metadata.annotations[kueue.x-k8s.io/job-min-parallelism]: Invalid value: "9": '
            "must be at least 1 and below the 3 pods of the Job"
        ),
    ),
    Case(
        "a Job with a switch in words",
        job,
        "metadata: {annotations: {kueue.x-k8s.io/job-completions-equal-parallelism: please}}",
        (
            "metadata.annotations[kueue.x-k8s.io/job-completions-equal-parallelism]: "
            'Invalid value: "please": must be `true` or `false`'
        ),
    ),
    Case(
        "a running Job that is moved to another queue",
        changed,
        """
        metadata: {labels: {kueue.x-k8s.io/queue-name: a}}
        spec: {suspend: false}
        ---
        metadata: {labels: {kueue.x-k8s.io/queue-name: b}}
        spec: {suspend: false}
        """,
        (
            'metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: "b": '
            "is immutable while the object is not suspended: suspend it first"
        ),
    ),
    Case(
        "a priority class that is taken away",
        changed,
        """
        metadata: {labels: {kueue.x-k8s.io/priority-class: high}}
        ---
        metadata: {}
        """,
        (
            'metadata.labels[kueue.x-k8s.io/priority-class]: Invalid value: "": '
            "cannot be removed: name another class instead"
        ),
    ),
    Case(
        "a ClusterQueue with a strategy that does not exist",
        cluster_queue,
        "spec: {queueingStrategy: LIFO}",
        "spec.queueingStrategy: 'LIFO' is not supported: use one of StrictFIFO, BestEffortFIFO",
    ),
    Case(
        "a quota below zero",
        cluster_queue,
        """
        spec:
          resourceGroups:
          - coveredResources: [cpu]
            flavors: [{name: f, resources: [{name: cpu, nominalQuota: -1}]}]
        """,
        "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: -1 is negative: write 0 or more",
    ),
    Case(
        "a quota with a unit that Kubernetes does not know",
        cluster_queue,
        """
        spec:
          resourceGroups:
          - coveredResources: [memory]
            flavors: [{name: f, resources: [{name: memory, nominalQuota: 5 GB}]}]
        """,
        f"spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: '5 GB' {QUANTITY}",
    ),
    Case(
        "lending without a cohort to lend to",
        cluster_queue,
        """
        spec:
          resourceGroups:
          - coveredResources: [cpu]
            flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1, lendingLimit: 1}]}]
        """,
        "spec.resourceGroups[0].flavors[0].resources[0].lendingLimit: needs a cohort: name one, or drop the limit",
    ),
    Case(
        "a flavor that lacks a covered resource",
        cluster_queue,
        """
        spec:
          resourceGroups:
          - coveredResources: [cpu, memory]
            flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}]}]
        """,
        "spec.resourceGroups[0].flavors[0].resources: must list the covered resources in their order: cpu, memory",
    ),
    Case(
        "an admission check on a flavor of somebody else",
        cluster_queue,
        "spec: {admissionChecksStrategy: {admissionChecks: [{name: c, onFlavors: [g]}]}}",
        (
            "spec.admissionChecksStrategy.admissionChecks[0].onFlavors: "
            "'g' is no flavor of this ClusterQueue: add it, or drop it here"
        ),
    ),
    Case(
        "a LocalQueue of a ClusterQueue that cannot be",
        local_queue,
        "spec: {clusterQueue: Team A}",
        (
            "spec.clusterQueue: 'Team A' is no object name: use lower case letters, digits, '-' and '.', "
            "at most 253 characters"
        ),
    ),
    Case(
        "a taint with an effect that does not exist",
        flavor,
        "spec: {nodeTaints: [{key: k, effect: Never}]}",
        "spec.nodeTaints[0].effect: 'Never' is not supported: use one of NoSchedule, PreferNoSchedule, NoExecute",
    ),
    Case(
        "a cohort above itself",
        cohort,
        "spec: {parentName: it}",
        "spec.parentName: a cohort cannot be its own parent: name another one or none",
    ),
    Case(
        "a Workload that asks for a speed",
        workload,
        """
        spec:
          podSets:
          - name: main
            count: 1
            template: {spec: {containers: [{name: c, resources: {requests: {cpu: fast}}}]}}
        """,
        f"spec.podSets[0].template.spec.containers[0].resources.requests[cpu]: 'fast' {QUANTITY}",
    ),
    Case(
        "a Workload that may shrink to more than it has",
        workload,
        "spec: {podSets: [{name: main, count: 2, minCount: 5, template: {spec: {}}}]}",
        "spec.podSets[0].minCount: must be between 1 and count (2): change one of them",
    ),
]

WIRE = [
    Case(
        "bytes that are no frame",
        wire,
        b"\xff",
        "ProtocolViolation: Frame: is not a valid AgentMessage of gatelift.wire.v1",
    ),
    Case(
        "a frame that is too large",
        wire,
        b"\x00" * (limits.FRAME_BYTES_MAX + 1),
        "TooLarge: Frame: must have at most 4194304 bytes, has 4194305",
    ),
    Case(
        "a placement without a workload",
        wire,
        report(GatesLifted(key=PlacementKey("", 1))),
        "ProtocolViolation: GatesLifted.key.uid: must not be empty",
    ),
    Case(
        "an epoch that cannot be",
        wire,
        report(GatesLifted(key=PlacementKey("u", 0))),
        "ProtocolViolation: GatesLifted.key.epoch: must be between 1 and 9223372036854775807, is 0",
    ),
    Case(
        "a name that no object can have",
        wire,
        report(ObjectReport(key=KEY, kind="Pod", name="x" * 300, uid="u", status=b"{}")),
        "TooLarge: ObjectReport.name: must have at most 253 bytes, has 300",
    ),
    Case(
        "a status that no API server takes",
        wire,
        report(ObjectReport(key=KEY, kind="Pod", name="x", uid="u", status=b"x" * (2 << 20))),
        "TooLarge: ObjectReport.status: must have at most 1572864 bytes, has 2097152",
    ),
    Case(
        "a clock that is no number",
        wire,
        report(control=(LeaseRenew(sent_at=float("nan")),)),
        "ProtocolViolation: LeaseRenew.sent_at: must be between 0 and 3.1536e+08, is nan",
    ),
]

ENROLMENT = [
    Case(
        "a token that was copied wrongly",
        enrolment,
        {"token": TOKEN[:-1] + "x"},
        "token: is not the one last printed for w1; run 'gatelift cluster add w1'",
    ),
    Case(
        "a token that has lain about",
        enrolment,
        {"spec": '{"tokenExpiresAt": "2020-01-01T00:00:00Z"}'},
        "token: expired at 2020-01-01T00:00:00Z; print a new one with 'gatelift cluster add w1'",
    ),
    Case(
        "a token for a second agent",
        enrolment,
        {"status": json.dumps({"enrolment": {"keyDigest": "other", "tokenDigest": tokens.digest(TOKEN)}})},
        "token: was used by another key; print a new one with 'gatelift cluster add w1'",
    ),
    Case(
        "a cluster that nobody has added",
        enrolment,
        {"cluster": "w9"},
        "cluster: w9 is not expected here; run 'gatelift cluster add w9' in the management cluster",
    ),
    Case(
        "an agent for the management cluster",
        enrolment,
        {"cluster": "local"},
        "cluster: 'local' is the management cluster itself and needs no agent; choose another name",
    ),
    Case(
        "a cluster that was removed",
        enrolment,
        {"spec": '{"revoked": true}'},
        "cluster: w1 was revoked; 'gatelift cluster add w1' takes it in again",
    ),
    Case(
        "a renewal by a key that nobody approved",
        enrolment,
        {"token": ""},
        "key: is not the one that was approved for w1; enrol anew with a token",
    ),
]

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://x"CA}}]
users: [{name: u, user: {USER}}]
"""

COMMAND_LINE = [
    Case(
        "a kubeconfig that is not there",
        command,
        "get workloads",
        "2: gatelift: kubeconfig MISSING: there is no such file; name one with --kubeconfig or KUBECONFIG",
    ),
    Case(
        "a kubeconfig that is empty",
        kubeconfig,
        "",
        "kubeconfig FILE: is empty or no kubeconfig; name another file with --kubeconfig or KUBECONFIG",
    ),
    Case(
        "a kubeconfig that is not YAML",
        kubeconfig,
        "a: [",
        "kubeconfig FILE: is not YAML in line 1; mend the syntax there",
    ),
    Case(
        "a kubeconfig whose context is not in it",
        kubeconfig,
        "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: []\nclusters: []\nusers: []\n",
        "kubeconfig FILE: names 'x', which it does not hold; choose another with --context, or mend current-context",
    ),
    Case(
        "a kubeconfig whose plugin is not installed",
        kubeconfig,
        KUBECONFIG.replace("CA", "").replace(
            "USER", "exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin}"
        ),
        "kubeconfig FILE: exec plugin no-such-plugin gave no credential; run it by hand to see why",
    ),
    Case(
        "a configuration file that is not there",
        command,
        "check-config MISSING",
        "2: gatelift: MISSING: cannot be read (No such file or directory); name a readable file with --config",
    ),
    Case(
        "a cluster with a name that cannot be",
        against(empty),
        "cluster add Bad_Name",
        f"2: gatelift: cluster name 'Bad_Name': {DNS_LABEL}",
    ),
    Case(
        "adding the management cluster to itself",
        against(empty),
        "cluster add local",
        "2: gatelift: name: 'local' is the management cluster itself and needs no agent; choose another",
    ),
    Case(
        "removing the management cluster",
        against(empty),
        "cluster remove local",
        "2: gatelift: name: 'local' is the management cluster itself and cannot be removed",
    ),
    Case(
        "adding a cluster before there is a manager",
        against(empty),
        "cluster add w1",
        "3: gatelift: no ConfigMap gatelift-system/gatelift-ca: start the manager, then add clusters",
    ),
    Case(
        "adding a removed cluster again before the manager has taken note",
        against(revokes_w1),
        "cluster add w1",
        "1: gatelift: w1: its revocation is not carried out yet; start the manager, then try again",
    ),
    Case(
        "approving a cluster that is not there",
        against(empty),
        "cluster approve w7",
        "3: gatelift: no WorkerCluster w7: 'gatelift cluster list' shows those that are there",
    ),
    Case(
        "approving before the agent has asked",
        against(expects_w1),
        "cluster approve w1",
        "1: gatelift: w1: its agent has not asked for a certificate yet; start the agent with its token first",
    ),
    Case(
        "explaining what does not exist",
        against(empty),
        "explain nothing",
        (
            "3: gatelift: no workload default/nothing, and none made for an object of that name: "
            "'gatelift get workloads' lists all; an object gets one by the label kueue.x-k8s.io/queue-name"
        ),
    ),
    Case(
        "looking without the right to",
        against(forbids),
        "cluster list",
        (
            '4: gatelift: 403 Forbidden: User "ada" cannot list resource; '
            "ask for that right, or choose another user with --context"
        ),
    ),
    Case(
        "a rotation where there is no authority",
        against(empty),
        "ca announce",
        (
            "3: gatelift: no Secret gatelift-system/gatelift-ca: start the manager, which makes it, "
            "or name its --namespace"
        ),
    ),
    Case(
        "a rotation of an authority that somebody broke",
        against(broken_authority),
        "ca switch",
        (
            "1: gatelift: the Secret of the certificate authority is incomplete or broken (ca.crt and ca.key are "
            "needed); restore it from a backup, or delete it and enrol the agents anew"
        ),
    ),
]

CASES = [*CONFIGURATION, *MANIFESTS, *WIRE, *ENROLMENT, *COMMAND_LINE]


@pytest.mark.parametrize(("door", "comes", "said"), [case[1:] for case in CASES], ids=[case.mistake for case in CASES])
def test_a_mistake_is_told_in_one_line(door: Callable[[Any], str], comes: Any, said: str) -> None:
    told = door(comes)
    assert told == said
    assert "\n" not in told


WRITTEN_BY_A_PEER = {
    "credits below zero": (
        report(control=(CreditGrant(credits=-1),)),
        "must be between 0 and 2147483647, is -1",
    ),
    "pods below zero": (
        report(CountsReport(key=KEY, pod_sets=(PodSetCounts(name="m", active=-1),))),
        "must be between 0 and 2147483647, is -1",
    ),
}


@pytest.mark.parametrize(("frame", "rule"), WRITTEN_BY_A_PEER.values(), ids=WRITTEN_BY_A_PEER.keys())
def test_a_number_out_of_bounds_names_its_field_and_rule(frame: Frame, rule: str) -> None:
    assert wire(frame).endswith(rule)


def test_an_api_server_that_does_not_answer_is_one_line_and_an_exit_code() -> None:
    def gone(server: FakeApiServer) -> None:
        server.fault("GET", "/", times=99, drop=True)

    said = against(gone)("cluster list")
    assert said.startswith("4: gatelift: ")
    assert "SERVER" in said
    assert "\n" not in said


def test_the_table_holds_what_was_asked_for() -> None:
    assert len(CASES) >= 60
    assert len({case.mistake for case in CASES}) == len(CASES)
