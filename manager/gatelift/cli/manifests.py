"""The manifests of `deploy/` as Python values, for whoever installs them: `demo`, `up`, tests. Reads files only."""

from __future__ import annotations

import enum
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gatelift_wire.values.keys import LABEL_ACCEPT

Document = dict[str, Any]

AGENT_NAMESPACE_ROLE = "gatelift-agent-namespace"
SYSTEM_NAMESPACE = "gatelift-system"


ACCEPTING = {LABEL_ACCEPT: "true", "pod-security.kubernetes.io/enforce": "baseline"}
"""Labels of a namespace that accepts work: the API server holds all pods there, whoever makes them, to what the agent's
policy takes by default."""


class InstallPart(enum.Enum):
    """What can be installed by itself; the value is the path below `deploy/`.

    A management cluster needs CRDS, NAMESPACE, MANAGER_ACCESS, WEBHOOKS_ACCESS, WEBHOOK_CONFIGURATION and
    MANAGEMENT_POLICIES; a worker NAMESPACE, AGENT_ACCESS, WORKER_POLICIES, and `agent_binding` in each namespace that
    accepts work. The workloads themselves (MANAGER, WEBHOOKS, AGENT) are left out where processes of the host do it.
    """

    CRDS = "crds"
    NAMESPACE = "common/namespace.yaml"
    MANAGER_ACCESS = "manager/access.yaml"
    MANAGER = "manager/manager.yaml"
    WEBHOOKS_ACCESS = "webhooks/access.yaml"
    WEBHOOKS = "webhooks/webhooks.yaml"
    WEBHOOK_CONFIGURATION = "webhooks/configuration.yaml"
    MANAGEMENT_POLICIES = "policies/management/policies.yaml"
    AGENT_ACCESS = "agent/access.yaml"
    AGENT = "agent/agent.yaml"
    WORKER_POLICIES = "policies/worker/policies.yaml"


MANAGEMENT: tuple[InstallPart, ...] = (
    InstallPart.CRDS,
    InstallPart.NAMESPACE,
    InstallPart.MANAGER_ACCESS,
    InstallPart.WEBHOOKS_ACCESS,
    InstallPart.MANAGEMENT_POLICIES,
    InstallPart.WEBHOOK_CONFIGURATION,
)
"""For a management cluster whose manager and webhooks run as processes of the host, in the order of installation."""
WORKER: tuple[InstallPart, ...] = (InstallPart.NAMESPACE, InstallPart.AGENT_ACCESS, InstallPart.WORKER_POLICIES)
"""For a worker cluster whose agent runs as a process of the host."""


class ManifestsError(Exception):
    """The manifests are not there; the text says where they were looked for."""


@cache
def deploy_folder() -> Path:
    """Return where the manifests are: inside the installed package, or beside the sources. ManifestsError: neither."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "deploy", package.parents[1] / "deploy"):
        if (folder / InstallPart.CRDS.value).is_dir():
            return folder
    raise ManifestsError(f"no deploy/ in {package} nor beside the sources: install the wheel or run from a checkout")


def load_manifests(*parts: InstallPart) -> list[Document]:
    """Return the documents of these parts, in order, fresh values each time. ManifestsError: they are not there."""
    documents: list[Document] = []
    for part in parts:
        path = deploy_folder() / part.value
        files = sorted(path.glob("*_*.yaml")) if path.is_dir() else [path]
        for file in files:
            try:
                text = file.read_text(encoding="utf-8")
            except OSError as error:
                raise ManifestsError(f"{file}: cannot be read ({error.strerror}): install Gatelift again") from error
            documents.extend(document for document in yaml.safe_load_all(text) if document)
    return documents


def agent_binding(namespace: str) -> Document:
    """Return the RoleBinding that lets the agent work in one namespace."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "gatelift-agent", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": AGENT_NAMESPACE_ROLE},
        "subjects": [{"kind": "ServiceAccount", "name": "gatelift-agent", "namespace": SYSTEM_NAMESPACE}],
    }
