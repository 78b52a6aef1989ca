"""toys.example.com/v1 Training: one leader, some workers, each with a pod template."""

from __future__ import annotations

from typing import Any

from gatelift_kube.objects.core import PodTemplate
from gatelift_kube.objects.meta import ObjectMeta, Struct
from gatelift_kube.values.resources import Resource

TRAINING = Resource("toys.example.com", "v1", "Training", "trainings")


class Group(Struct, frozen=True):
    """Some pods of one template."""

    replicas: int = 1
    template: PodTemplate = PodTemplate()


class TrainingSpec(Struct, frozen=True):
    """What is to run."""

    leader: Group = Group()
    workers: Group = Group()


class TrainingStatus(Struct, frozen=True):
    """How it goes."""

    phase: str = ""


class Training(Struct, frozen=True):
    """One training."""

    metadata: ObjectMeta = ObjectMeta()
    spec: TrainingSpec = TrainingSpec()
    status: TrainingStatus = TrainingStatus()


def a_group(*, cpu: str = "1", replicas: int = 1, **spec: Any) -> dict[str, Any]:
    """Return one group as JSON."""
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": cpu}}}
    return {"replicas": replicas, "template": {"metadata": {}, "spec": {"containers": [container], **spec}}}


DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{TRAINING.plural}.{TRAINING.group}"},
    "spec": {
        "group": TRAINING.group,
        "names": {
            "kind": TRAINING.kind,
            "listKind": f"{TRAINING.kind}List",
            "plural": TRAINING.plural,
            "singular": TRAINING.plural.removesuffix("s"),
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": TRAINING.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}
"""As a cluster is given it."""
