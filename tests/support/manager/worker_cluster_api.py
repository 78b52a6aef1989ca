"""The WorkerCluster objects of a management cluster, without a server: what links write is checked and kept.

A status has to pass the CRD that is installed, and the size that an API server takes, as a real write does.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import msgspec
import yaml

from gatelift_kube.deciding.writes import Create, Patch, WriteDone, WriteError, WriteFailed
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_sandbox.embedded.schema import Schema, prune, validate

CRD = Path(__file__).parents[3] / "deploy" / "crds" / "gatelift.dev_workerclusters.yaml"
BYTES_MAX = 512 * 1024
"""A third of what an API server takes: it keeps beside a status who wrote each part of it."""


@cache
def schema() -> Schema:
    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    return Schema(version["schema"]["openAPIV3Schema"]["properties"]["status"])


def refusal(status: object) -> WriteError | None:
    """Return why the API server would refuse a status, None when it takes it."""
    if validate(status, schema(), "status") or prune(status, schema()):
        return WriteError.INVALID
    return WriteError.TOO_LARGE if len(json.dumps(status)) > BYTES_MAX else None


class Api:
    """The WorkerCluster objects of a management cluster; every write is checked against its resourceVersion."""

    def __init__(self, **spec: object) -> None:
        self.version = 1
        self.refuses: str = ""
        """A field that no status may have, as an API server with an older CRD, or a policy, might say."""
        self.refused: list[WriteError] = []
        self.objects: dict[str, dict[str, object]] = {}
        self.put("w1", spec=spec, status={"keyDigest": "k"})

    def put(self, name: str, **parts: object) -> None:
        self.version += 1
        old = self.objects.get(name, {"metadata": {"name": name, "uid": f"uid-{name}"}})
        merged = {**old, **parts}
        merged["metadata"] = {**old["metadata"], "resourceVersion": str(self.version)}  # type: ignore[dict-item]
        self.objects[name] = merged

    def annotate(self, name: str, annotations: dict[str, str]) -> None:
        self.objects[name]["metadata"]["annotations"] = annotations  # type: ignore[index]
        self.put(name)

    def get(self, name: str) -> WorkerCluster:
        return msgspec.convert(self.objects[name], WorkerCluster)

    def write(self, command: Patch | Create) -> WriteDone | WriteFailed:
        name = command.ref.key.name
        body = json.loads(command.body)
        if isinstance(command, Create):
            self.put(name, spec={}, status={"keyDigest": "k"})
            return WriteDone(write_id=command.write_id, object=self.get(name))
        version = str(self.get(name).metadata.resource_version)
        if body["metadata"].get("resourceVersion", version) != version:  # without one a write has no condition
            return WriteFailed(write_id=command.write_id, error=WriteError.CONFLICT, message="changed")
        annotations = body["metadata"].get("annotations", {})
        if annotations:
            metadata = self.objects[name]["metadata"]
            merged = {**metadata.get("annotations", {}), **annotations}  # type: ignore[attr-defined]
            metadata["annotations"] = {key: text for key, text in merged.items() if text is not None}  # type: ignore[index]
        merged_status = {**self.objects[name].get("status", {}), **body.get("status", {})}  # type: ignore[dict-item]
        status = {field: value for field, value in merged_status.items() if value is not None}
        broken = WriteError.INVALID if self.refuses in body.get("status", {}) else refusal(status)
        if broken is not None:
            self.refused.append(broken)
            return WriteFailed(write_id=command.write_id, error=broken, message=f"status: {broken.value}")
        self.put(name, status=status)
        return WriteDone(write_id=command.write_id, object=self.get(name))
