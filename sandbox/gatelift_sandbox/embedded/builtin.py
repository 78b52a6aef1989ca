"""The kinds that are served without a CustomResourceDefinition. Pure."""

from __future__ import annotations

from dataclasses import replace

from gatelift_kube.values import resources as known
from gatelift_kube.values.resources import Resource
from gatelift_sandbox.embedded.kinds import ServedKind, kind
from gatelift_sandbox.embedded.rules import cluster
from gatelift_sandbox.embedded.rules.custom import DefinitionRules
from gatelift_sandbox.embedded.rules.jobs import JobRules
from gatelift_sandbox.embedded.rules.plain import LeaseRules, Named, WithGeneration, WithStatus
from gatelift_sandbox.embedded.rules.pods import PodRules

CORE_EVENT = Resource("", "v1", "Event", "events")
SERVICE = Resource("", "v1", "Service", "services")
ENDPOINTS = Resource("", "v1", "Endpoints", "endpoints")
RBAC = "rbac.authorization.k8s.io"
ROLE = Resource(RBAC, "v1", "Role", "roles")
ROLE_BINDING = Resource(RBAC, "v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE = Resource(RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Resource(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
_ADMISSION = "admissionregistration.k8s.io"
MUTATING_WEBHOOKS = Resource(
    _ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
)
VALIDATING_WEBHOOKS = Resource(
    _ADMISSION, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)
POLICIES = Resource(_ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False)
POLICY_BINDINGS = Resource(
    _ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)


def kinds() -> list[ServedKind]:
    """Return all built-in kinds. Where a group serves several, the order is that of discovery."""
    core_events = kind(CORE_EVENT, cluster.EventRules(), short=("ev",))
    new_events = replace(
        core_events,
        resource=known.EVENT,
        to_storage=cluster.event_to_core,
        from_storage=cluster.event_from_core,
    )
    return [
        kind(known.POD, PodRules(), short=("po",), subresources=("status", "binding"), categories=("all",)),
        kind(known.NAMESPACE, cluster.NamespaceRules(), short=("ns",), subresources=("status", "finalize")),
        kind(known.NODE, cluster.NodeRules(), short=("no",), subresources=("status",)),
        kind(known.CONFIG_MAP, short=("cm",)),
        kind(known.SECRET, cluster.SecretRules()),
        kind(known.SERVICE_ACCOUNT, cluster.ServiceAccountRules(), short=("sa",), subresources=("token",)),
        kind(SERVICE, WithStatus(), short=("svc",), subresources=("status",), categories=("all",)),
        kind(ENDPOINTS, short=("ep",)),
        kind(known.LIMIT_RANGE, short=("limits",)),
        core_events,
        new_events,
        kind(known.JOB, JobRules(), subresources=("status",), categories=("all",)),
        kind(known.LEASE, LeaseRules()),
        kind(known.PRIORITY_CLASS, cluster.PriorityClassRules(), short=("pc",)),
        kind(known.RUNTIME_CLASS),
        kind(ROLE, Named()),
        kind(ROLE_BINDING, Named()),
        kind(CLUSTER_ROLE, Named()),
        kind(CLUSTER_ROLE_BINDING, Named()),
        kind(known.CUSTOM_RESOURCE_DEFINITION, DefinitionRules(), short=("crd", "crds"), subresources=("status",)),
        kind(MUTATING_WEBHOOKS, WithGeneration()),
        kind(VALIDATING_WEBHOOKS, WithGeneration()),
        kind(POLICIES, WithGeneration(), subresources=("status",)),
        kind(POLICY_BINDINGS, WithGeneration()),
    ]
