"""The WorkerCluster objects of a management cluster, without a server: what links write is checked and kept."""

from __future__ import annotations

import json

import msgspec

from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.writes import Create, Patch, WriteDone, WriteError, WriteFailed


class Api:
    """The WorkerCluster objects of a management cluster; every write is checked against its resourceVersion."""

    def __init__(self, **spec: object) -> None:
        self.version = 1
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
        status = {**self.objects[name].get("status", {}), **body.get("status", {})}  # type: ignore[dict-item]
        self.put(name, status=status)
        return WriteDone(write_id=command.write_id, object=self.get(name))
