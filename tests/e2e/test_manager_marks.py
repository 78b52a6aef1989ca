"""IS-54: the manager's ServiceAccount changes what bears a mark of ours and nothing else, on a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gatelift.cli.manifests import MANAGEMENT, InstallPart, load_manifests
from gatelift_sandbox.provider import Cluster
from support.e2e.rules import AS_GATELIFT, GATELIFT, MANAGER, control_plane, refused
from support.e2e.sandbox_kubectl import Kubectl
from support.manager.marks import MARKED, UNMARKED

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

Json = dict[str, Any]
TEXT = "bears no mark of Gatelift or Kueue"
AS_MANAGER = (f"--as={MANAGER}", *GATELIFT)
LABEL = json.dumps({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "q"}}})
STATUS = {
    "Pod": {"conditions": [{"type": "Ready", "status": "False"}]},
    "Job": {"conditions": [{"type": "Seen", "status": "True"}]},
}


RBAC: Json = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "as-kubectl"}}
READS: tuple[Json, ...] = (
    {
        **RBAC,
        "kind": "ClusterRole",
        "rules": [
            {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["get"]},
            {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["get"]},
        ],
    },
    {
        **RBAC,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "as-kubectl"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": MANAGER}],
    },
)
"""`kubectl patch --subresource=status` reads a status before it writes it; the manager does not, and may not."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    parts = [part for part in MANAGEMENT if part is not InstallPart.WEBHOOK_CONFIGURATION]
    yield from control_plane(tmp_path_factory.mktemp("home"), [*load_manifests(*parts), *READS])


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    return Kubectl(cluster)


def named(document: Json, name: str) -> tuple[Json, tuple[str, str]]:
    return {**document, "metadata": {**document["metadata"], "name": name}}, (document["kind"].lower(), name)


@pytest.mark.parametrize("case", sorted(UNMARKED))
async def test_is_54_what_was_never_queued_is_out_of_the_managers_reach(kubectl: Kubectl, case: str) -> None:
    """Nor does it help to give it a mark in the same write: what is there already counts."""
    document, what = named(UNMARKED[case], f"plain-{case}")
    await kubectl("create", "-f", "-", manifest=document)
    status = json.dumps({"status": STATUS[document["kind"]]})
    merge = ("--type=merge", "-p")
    await refused(kubectl, TEXT, "patch", *what, *merge, LABEL, *AS_MANAGER)
    await refused(kubectl, TEXT, "patch", *what, "--subresource=status", *merge, status, *AS_MANAGER)
    await refused(kubectl, TEXT, "delete", *what, *AS_MANAGER)
    await kubectl("label", *what, "mine=yes")
    await kubectl("delete", *what, "--wait=false")


@pytest.mark.parametrize("case", sorted(MARKED))
async def test_is_54_each_mark_by_itself_lets_the_manager_do_its_work(kubectl: Kubectl, case: str) -> None:
    document, what = named(MARKED[case], f"marked-{case}")
    await kubectl("create", "-f", "-", *AS_GATELIFT, manifest=document)
    merge = ("--type=merge", "-p")
    status = json.dumps({"status": STATUS[document["kind"]]})
    await kubectl("patch", *what, "--subresource=status", *merge, status, *AS_MANAGER)
    await kubectl("delete", *what, "--wait=false", *AS_MANAGER)
    if document["metadata"].get("finalizers"):
        await kubectl("patch", *what, *merge, json.dumps({"metadata": {"finalizers": None}}), *AS_MANAGER)
