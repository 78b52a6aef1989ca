"""What is in deploy/: up to date with the code, complete, and with no more rights than needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from scripts import crds, kind_rights, webhook_configuration
from scripts.crd_schema import StructFacts, struct_schema

from gatelift.cli import manifests
from gatelift.cli.manifests import MANAGEMENT, WORKER, InstallPart, ManifestsError, agent_binding, load_manifests
from gatelift.webhooks import conversion
from gatelift.webhooks.configuration import CONVERTED, WARNED
from gatelift_kinds.registry import SERVED, Registry
from gatelift_kinds.shared import own_marks
from gatelift_kinds.shared.made_for import OWNERS_MAX
from gatelift_kinds.shared.markers import MANAGED
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values import resources
from support.manager.marks import MARKED, PLACED, PREFIXES, UNMARKED, bears_a_mark
from support.toys.training.kind import TrainingKind

Json = dict[str, Any]
DEPLOY = Path(__file__).parents[2] / "deploy"
EVERY = load_manifests(*InstallPart)


def of_kind(kind: str, *parts: InstallPart) -> list[Json]:
    return [one for one in load_manifests(*(parts or tuple(InstallPart))) if one["kind"] == kind]


def grants(*parts: InstallPart) -> list[tuple[str, str, str, bool, bool]]:
    """Return (role, resource, verb, cluster-wide, by name) of every rule."""
    return [
        (role["metadata"]["name"], resource, verb, role["kind"] == "ClusterRole", bool(rule.get("resourceNames")))
        for kind in ("Role", "ClusterRole")
        for role in of_kind(kind, *parts)
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def test_crds_are_as_the_types_say() -> None:
    assert crds.outdated() == [], "run `python -m scripts.crds`"


def test_the_webhook_configuration_is_as_the_code_says() -> None:
    assert webhook_configuration.PATH.read_text() == webhook_configuration.content()


def test_facts_about_a_field_that_does_not_exist_are_an_error() -> None:
    with pytest.raises(KeyError, match="Condition: facts about fields"):
        struct_schema(Condition, {Condition: StructFacts(fields={"statos": {}})})


def test_every_part_can_be_loaded_and_every_object_has_a_kind_and_a_name() -> None:
    assert all(one["kind"] and one["metadata"]["name"] for one in EVERY)
    keys = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in EVERY]
    assert len(keys) == len(set(keys))


def test_loading_twice_gives_values_of_their_own() -> None:
    first, second = load_manifests(InstallPart.NAMESPACE), load_manifests(InstallPart.NAMESPACE)
    first[0]["metadata"]["name"] = "changed"
    assert second[0]["metadata"]["name"] == "gatelift-system"


def test_missing_manifests_are_told_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "deploy_folder", lambda: tmp_path)
    with pytest.raises(ManifestsError, match="install Gatelift again"):
        load_manifests(InstallPart.NAMESPACE)


def test_manifests_travel_in_the_wheel() -> None:
    project = (DEPLOY.parent / "pyproject.toml").read_text()
    assert '[tool.hatch.build.targets.wheel.force-include]\n"deploy" = "gatelift/deploy"' in project


def test_every_kind_that_we_read_has_a_crd() -> None:
    names = {one["metadata"]["name"] for one in of_kind("CustomResourceDefinition")}
    known = [one for one in vars(resources).values() if isinstance(one, resources.Resource)]
    ours = {f"{one.plural}.{one.group}" for one in known if one.group in {"kueue.x-k8s.io", "gatelift.dev"}}
    assert names == ours


@pytest.mark.parametrize(
    ("plural", "short", "columns"),
    [
        ("clusterqueues", ["cq"], ["Cohort", "Strategy", "Pending Workloads", "Admitted Workloads"]),
        ("localqueues", ["queue", "queues", "lq"], ["ClusterQueue", "Pending Workloads", "Admitted Workloads"]),
        (
            "workloads",
            ["kwl", "kueueworkload", "kueueworkloads"],
            ["Queue", "Reserved in", "Cluster", "Admitted", "Finished", "Age"],
        ),
        ("multikueueclusters", ["mkc"], ["Connected", "Age"]),
        ("workloadpriorityclasses", ["wpc"], ["Value"]),
        ("resourceflavors", ["flavor", "flavors", "rf"], []),
    ],
)
def test_kubectl_prints_as_with_kueue_and_is_47_the_cluster_of_a_workload(
    plural: str, short: list[str], columns: list[str]
) -> None:
    (crd,) = [one for one in of_kind("CustomResourceDefinition") if one["spec"]["names"]["plural"] == plural]
    assert crd["spec"]["names"]["shortNames"] == short
    for version in crd["spec"]["versions"]:
        assert [one["name"] for one in version.get("additionalPrinterColumns", [])] == columns


def test_kueues_kinds_are_stored_as_v1beta2_and_still_served_as_v1beta1() -> None:
    for crd in of_kind("CustomResourceDefinition", InstallPart.CRDS):
        if crd["spec"]["group"] != "kueue.x-k8s.io":
            continue
        new, old = crd["spec"]["versions"]
        assert (new["name"], new["served"], new["storage"]) == ("v1beta2", True, True)
        assert (old["name"], old["served"], old["storage"], old["deprecated"]) == ("v1beta1", True, False, True)
        plural, strategy = crd["spec"]["names"]["plural"], crd["spec"]["conversion"]["strategy"]
        assert strategy == ("Webhook" if plural in CONVERTED else "None"), plural


def test_the_webhooks_may_change_the_definitions_that_they_convert_and_no_others() -> None:
    (rule,) = [
        rule
        for role in of_kind("ClusterRole", InstallPart.WEBHOOKS_ACCESS)
        for rule in role["rules"]
        if rule["resources"] == ["customresourcedefinitions"]
    ]
    assert rule["resourceNames"] == [f"{plural}.kueue.x-k8s.io" for plural in CONVERTED]


@pytest.mark.parametrize("folder", sorted(DEPLOY.rglob("kustomization.yaml")), ids=lambda path: str(path.parent.name))
def test_each_kustomization_names_files_that_are_there_and_all_of_its_own(folder: Path) -> None:
    named = yaml.safe_load(folder.read_text())["resources"]
    assert all((folder.parent / one).exists() for one in named)
    beside = {path.name for path in folder.parent.glob("*.yaml")} - {"kustomization.yaml"}
    assert beside <= set(named)


# --- rights ---


def test_nobody_has_wildcard_rights() -> None:
    for kind in ("Role", "ClusterRole"):
        for role in of_kind(kind):
            for rule in role["rules"]:
                assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]], role["metadata"]["name"]


def test_secrets_are_read_by_name_in_the_own_namespace_only() -> None:
    for role, resource, verb, everywhere, by_name in grants():
        if resource == "secrets":
            assert not everywhere, role
            assert verb in {"get", "patch", "create"}
            assert by_name or verb == "create", role


def test_is_50_an_agent_reads_namespaces_nodes_pods_and_flavors_and_no_more_outside_given_namespaces() -> None:
    bound = {one["roleRef"]["name"] for one in of_kind("ClusterRoleBinding", InstallPart.AGENT_ACCESS)}
    assert bound == {"gatelift-agent"}
    cluster_wide = {
        (resource, verb)
        for role in of_kind("ClusterRole", InstallPart.AGENT_ACCESS)
        if role["metadata"]["name"] in bound
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    seen = ("namespaces", "nodes", "resourceflavors")
    summed = {("pods", "list"), ("pods", "watch")}  # what runs on the nodes, for their sums alone (decision 71)
    assert cluster_wide == summed | {(resource, verb) for resource in seen for verb in ("get", "list", "watch")}


def test_hd_194_the_manager_reads_the_nodes_as_its_agent_of_local_does() -> None:
    """HD-194: without, what vanished at home with its node was charged for ever, and nobody said which right lacked."""
    granted = grants(InstallPart.MANAGER_ACCESS)
    assert {verb for _, resource, verb, all_, _ in granted if resource == "nodes" and all_} == {"get", "list", "watch"}


def test_hd_201_the_policy_on_statuses_knows_what_an_older_version_calls_a_field() -> None:
    """HD-201: a policy that matches all versions sees the fields as the one that was asked for spells them."""
    name = "gatelift-workload-status"
    (policy,) = [one for one in of_kind("ValidatingAdmissionPolicy") if one["metadata"]["name"] == name]
    (fields,) = [one["expression"] for one in policy["spec"]["variables"] if one["name"] == "fields"]
    older = {"status": {"accumulatedPastExexcutionTimeSeconds": 7}}
    newer = conversion.converted({"apiVersion": conversion.OLD, "kind": "Workload", **older}, conversion.NEW)
    for field in (*older["status"], *newer["status"]):
        assert f"'{field}'" in fields


def test_the_webhooks_write_nothing_but_their_own_secret_and_configurations() -> None:
    writes = {
        (resource, by_name)
        for _, resource, verb, _, by_name in grants(InstallPart.WEBHOOKS_ACCESS)
        if verb not in {"get", "list", "watch"} and (resource, verb) != ("secrets", "create")
    }
    assert writes == {
        ("secrets", True),
        ("mutatingwebhookconfigurations", True),
        ("validatingwebhookconfigurations", True),
        ("customresourcedefinitions", True),
    }


def test_the_manager_makes_no_pods_and_no_jobs() -> None:
    made = {resource for _, resource, verb, _, _ in grants(InstallPart.MANAGER_ACCESS) if verb == "create"}
    assert made.isdisjoint({"pods", "jobs"})


def test_every_binding_leads_to_a_role_and_an_account_that_are_there() -> None:
    roles = {(one["kind"], one["metadata"]["name"]) for one in EVERY if one["kind"] in {"Role", "ClusterRole"}}
    accounts = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in of_kind("ServiceAccount")}
    bindings = [one for one in EVERY if one["kind"].endswith("Binding") and "roleRef" in one]
    for binding in [*bindings, agent_binding("team")]:
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in roles
        assert {(one["namespace"], one["name"]) for one in binding["subjects"]} <= accounts


def test_the_binding_for_a_namespace_is_the_one_in_the_folder() -> None:
    written = yaml.safe_load((DEPLOY / "agent" / "namespace" / "binding.yaml").read_text())
    made = agent_binding("team")
    assert made["metadata"].pop("namespace") == "team"
    assert written == made


# --- webhooks and policies ---


def test_webhooks_stay_out_of_kube_system_and_our_namespace_and_fail_closed() -> None:
    for configuration in load_manifests(InstallPart.WEBHOOK_CONFIGURATION):
        for one in configuration["webhooks"]:
            (outside,) = one["namespaceSelector"]["matchExpressions"]
            assert outside["operator"] == "NotIn"
            assert set(outside["values"]) == {"kube-system", "gatelift-system"}
            warned_only = one["name"].split(".")[1] in WARNED
            assert one["failurePolicy"] == ("Ignore" if warned_only else "Fail")
            assert one["sideEffects"] == "None"
            narrow = {"pods", "jobs"}.isdisjoint(one["rules"][0]["resources"])
            asked = {"grown", "ours"} if one["name"].startswith("grown.") else {"changed" if narrow else "marked"}
            wanted = {"not-gatelift", *asked}
            assert {condition["name"] for condition in one["matchConditions"]} >= wanted


def test_hd_313_the_policy_on_owners_refuses_more_than_the_manager_reads() -> None:
    (policy,) = [
        one for one in of_kind("ValidatingAdmissionPolicy") if one["metadata"]["name"] == "gatelift-workload-owner"
    ]
    (rule,) = [one for one in policy["spec"]["validations"] if "ownerReferences" in one["expression"]]
    assert f"size(object.metadata.ownerReferences) <= {OWNERS_MAX}\n" in rule["expression"].replace(" ||", "\n||")
    assert f"more than {OWNERS_MAX}" in rule["message"]


def test_every_policy_is_bound_and_denies() -> None:
    policies = {one["metadata"]["name"] for one in of_kind("ValidatingAdmissionPolicy")}
    bindings = of_kind("ValidatingAdmissionPolicyBinding")
    assert {one["spec"]["policyName"] for one in bindings} == policies
    assert all(one["spec"]["validationActions"] == ["Deny"] for one in bindings)


@pytest.mark.parametrize(
    ("kind", "group", "plural"),
    [pytest.param("pods", "", "pods", id="pods"), pytest.param("jobs", "batch", "jobs", id="jobs")],
)
def test_is_54_the_manager_is_bound_to_what_bears_a_mark(kind: str, group: str, plural: str) -> None:
    """The policy itself is asked on a real API server: `tests/e2e/test_manager_marks.py`."""
    name = f"gatelift-manager-{kind}"
    (policy,) = [
        one
        for one in of_kind("ValidatingAdmissionPolicy", InstallPart.MANAGEMENT_POLICIES)
        if one["metadata"]["name"] == name
    ]
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert (rule["apiGroups"], rule["operations"]) == ([group], ["UPDATE", "DELETE"])
    assert rule["resources"] == [plural, f"{plural}/status"]
    written = {
        resource
        for _, resource, verb, _, _ in grants(InstallPart.MANAGER_ACCESS)
        if resource.partition("/")[0] == plural and verb in {"patch", "delete", "update", "create"}
    }
    assert written - {f"{plural}/finalizers"} == set(rule["resources"]), "all that its role lets it write"
    who, *asked_first = policy["spec"]["matchConditions"]
    marked = f"'{MANAGED}' in oldObject.metadata.finalizers"
    assert [one["expression"].strip() for one in asked_first] == [
        f"!has(oldObject.metadata.finalizers) || !({marked})" for _ in asked_first
    ], "what is not judged bears the finalizer, which is a mark"
    assert MANAGED.startswith(PREFIXES)
    (account,) = [one["metadata"] for one in of_kind("ServiceAccount", InstallPart.MANAGER_ACCESS)]
    assert f"'system:serviceaccount:{account['namespace']}:{account['name']}'" in who["expression"]
    (validation,) = policy["spec"]["validations"]
    assert all(f"'{one}'" in validation["expression"] for one in (*PREFIXES, PLACED))


@pytest.mark.parametrize("case", [*MARKED, *UNMARKED])
def test_is_54_a_mark_is_what_it_is_in_simulations(case: str) -> None:
    document = MARKED.get(case) or UNMARKED[case]
    assert bears_a_mark(document) is (case in MARKED)
    assert own_marks.bears_a_mark(msgspec.json.encode(document)) is (case in MARKED)


def test_workloads_run_without_privileges_and_with_a_memory_limit() -> None:
    deployments = of_kind("Deployment")
    assert len(deployments) == 3
    for one in deployments:
        spec = one["spec"]["template"]["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert one["spec"]["replicas"] == 2
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]


def test_what_hosts_install_is_in_an_order_that_works() -> None:
    kinds = [one["kind"] for one in load_manifests(*MANAGEMENT)]
    assert kinds.index("Namespace") < kinds.index("ServiceAccount")
    assert kinds[-1] == "ValidatingWebhookConfiguration"
    assert "Deployment" not in kinds
    assert "Deployment" not in [one["kind"] for one in load_manifests(*WORKER)]


# --- networks ---


def network_policies(folder: str) -> list[Json]:
    """Return the policies of a folder, as its kustomization has them."""
    return list(yaml.safe_load_all((DEPLOY / folder / "policies.yaml").read_text()))


def test_is_26_each_daemon_has_a_network_policy_and_nobody_dials_an_agent() -> None:
    policies = [*network_policies("network-policies"), *network_policies("network-policies/worker")]
    daemons = {one["metadata"]["name"] for one in of_kind("Deployment")}
    assert {one["metadata"]["name"] for one in policies} == daemons
    (agent,) = [one for one in policies if one["metadata"]["name"] == "gatelift-agent"]
    assert all("from" in rule for rule in agent["spec"]["ingress"])
    for one in policies:
        assert one["spec"]["policyTypes"] == ["Ingress"]


def test_is_26_the_webhooks_are_open_to_addresses_since_no_policy_selects_an_api_server() -> None:
    (webhooks,) = [one for one in network_policies("network-policies") if one["metadata"]["name"].endswith("webhooks")]
    (rule,) = [one for one in webhooks["spec"]["ingress"] if {"port": "webhooks", "protocol": "TCP"} in one["ports"]]
    blocks = [one["ipBlock"] for one in rule["from"] if "ipBlock" in one]
    assert blocks
    assert all(block["except"] for block in blocks), "pods of this cluster are kept out"


SECURED = {"management": {"gatelift-manager", "gatelift-webhooks"}, "worker": {"gatelift-agent"}}


@pytest.mark.parametrize("side", SECURED)
def test_is_26_the_component_guards_the_metrics_of_each_daemon_and_lets_it_ask(side: str) -> None:
    folder = DEPLOY / "components" / "metrics-authentication" / side
    component = yaml.safe_load((folder / "kustomization.yaml").read_text())
    patches = [yaml.safe_load(one["patch"]) for one in component["patches"]]
    assert {one["metadata"]["name"] for one in patches} == SECURED[side]
    deployments = {one["metadata"]["name"]: one for one in of_kind("Deployment")}
    for patch in patches:
        (changed,) = patch["spec"]["template"]["spec"]["containers"]
        (container,) = deployments[patch["metadata"]["name"]]["spec"]["template"]["spec"]["containers"]
        assert changed["name"] == container["name"]
        (variable,) = changed["env"]
        prefix = "GATELIFT_AGENT_" if side == "worker" else "GATELIFT_"
        assert variable == {"name": f"{prefix}METRICS_AUTHENTICATION", "value": "true"}
        assert {"name": "metrics", "containerPort": 8080} in container["ports"]
    access = list(yaml.safe_load_all((folder / "access.yaml").read_text()))
    (binding,) = [one for one in access if one["kind"] == "ClusterRoleBinding"]
    assert {one["name"] for one in binding["subjects"]} == SECURED[side]
    roles = {one["metadata"]["name"]: one["rules"] for one in access if one["kind"] == "ClusterRole"}
    assert roles["gatelift-metrics-reader"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    asked = {(rule["resources"][0], *rule["verbs"]) for rule in roles["gatelift-metrics-authentication"]}
    assert asked == {("tokenreviews", "create"), ("subjectaccessreviews", "create")}
    assert (
        f"#   - ../../components/metrics-authentication/{side}"
        in (DEPLOY / "overlays" / side / "kustomization.yaml").read_text()
    )


def test_dw_6_the_component_lets_the_agent_gate_what_drivers_make_and_no_more() -> None:
    """HD-380."""
    folder = DEPLOY / "components" / "group-members" / "worker"
    component = yaml.safe_load((folder / "kustomization.yaml").read_text())
    (patch,) = [yaml.safe_load(one["patch"]) for one in component["patches"]]
    (changed,) = patch["spec"]["template"]["spec"]["containers"]
    assert changed["env"] == [{"name": "GATELIFT_AGENT_GROUP_MEMBERS", "value": "adopt"}]
    assert [port["name"] for port in changed["ports"]] == ["members"]
    access = list(yaml.safe_load_all((folder / "access.yaml").read_text()))
    rules = [rule for one in access if one["kind"] in {"Role", "ClusterRole"} for rule in one["rules"]]
    assert all(rule["resourceNames"] == ["gatelift-agent-members"] for rule in rules)
    assert {(*rule["resources"], *rule["verbs"]) for rule in rules} == {
        ("mutatingwebhookconfigurations", "get", "patch"),
        ("secrets", "get", "patch"),
    }
    asked, service = yaml.safe_load_all((folder / "gate.yaml").read_text())
    assert (asked["metadata"]["name"], asked["webhooks"]) == ("gatelift-agent-members", [])
    assert service["metadata"]["name"] == "gatelift-agent-members"
    opened = yaml.safe_load((DEPLOY / "network-policies" / "worker-group-members" / "policies.yaml").read_text())
    (rule,) = opened["spec"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": "members"}]
    assert all("except" in one["ipBlock"] for one in rule["from"] if "ipBlock" in one)


def test_is_26_an_image_is_built_on_bases_that_are_named_by_digest() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("FROM ")] == ["FROM ${BUILDER} AS build", "FROM ${BASE}"]
    assert not [line for line in lines if line.startswith("ARG ") and "=" in line], "no default without a digest"
    assert any("*@sha256:*|sha256:*) ;;" in line for line in lines), "a base by tag fails the build"


def test_hd_117_network_policies_fit_the_daemons_and_leave_the_agents_way_in_open() -> None:
    workloads = {one["metadata"]["name"]: one["spec"]["template"] for one in of_kind("Deployment")}
    policies = network_policies("network-policies")
    assert {one["metadata"]["name"] for one in policies} == {"gatelift-manager", "gatelift-webhooks"}
    for policy in [*policies, *network_policies("network-policies/worker")]:
        template = workloads[policy["metadata"]["name"]]
        assert policy["spec"]["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
        listens = template["spec"]["containers"][0]["ports"]
        known = {port["containerPort"] for port in listens} | {port["name"] for port in listens}
        named = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
        assert named <= known
        assert len(named) == len(listens), "a port that no rule names is closed"
    (manager,) = [one for one in policies if one["metadata"]["name"] == "gatelift-manager"]
    open_to_all = [port["port"] for rule in manager["spec"]["ingress"] if "from" not in rule for port in rule["ports"]]
    assert open_to_all == [7443, 7444]


@pytest.mark.parametrize("part", kind_rights.PARTS, ids=lambda part: f"{part.file}: {part.rules.__name__}")
def test_rights_to_kinds_are_as_the_registry_says(part: kind_rights.Part) -> None:
    text = (kind_rights.DEPLOY / part.file).read_text()
    assert kind_rights.written(part, text, SERVED) == text


def test_rm_4_a_new_kind_is_in_the_rights_and_its_policies_are_missed() -> None:
    kinds = Registry(*SERVED, TrainingKind())
    rules = {part.rules.__name__: list(part.rules(kinds)) for part in kind_rights.PARTS}
    assert "    resources: [trainings/finalizers]" in rules["finalizers"]
    wanted = ["  - apiGroups: [toys.example.com]", "    resources: [trainings]"]
    assert all(line in rules[part] for part in ("at_home", "at_worker") for line in wanted)
    missed = kind_rights.unkept(kinds, lambda file: (kind_rights.DEPLOY / file).read_text())
    assert missed == [
        "policies/management/policies.yaml: no policy gatelift-manager-trainings of trainings",
        "policies/worker/policies.yaml: no policy gatelift-placed-trainings of trainings",
    ]
