"""The state directory: which clusters run, of which provider, and by which processes. One JSON file a cluster.

Layout: `HOME/clusters/NAME/cluster.json` beside the cluster's data, logs and keys. All providers write it, so that
`down` in another process finds what `up` started, and a later `up` sweeps away what a crash has left.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import msgspec

from gatelift_sandbox import children
from gatelift_sandbox.errors import AlreadyThereError, SandboxError
from gatelift_sandbox.provider import Capabilities, Cluster

RECORD = "cluster.json"
CLAIM_SECONDS_MAX = 60.0
"""Between the claim of a folder and its first entry lie milliseconds, or as long as a machine stands still; an empty
folder older than this is a crash's."""


class ClusterEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What is written down of one cluster. `starter` is the process that made it; unless `detached` it ends with it."""

    name: str
    provider: str
    kubeconfig: str
    server: str
    kubectl: str | None = None
    host_address: str = "127.0.0.1"
    logs: str | None = None
    record: str | None = None
    capabilities: dict[str, bool] = {}
    starter: children.Child
    detached: bool
    children: dict[str, children.Child] = {}
    facts: dict[str, str] = {}

    def left_over(self) -> bool:
        """Return whether a crash left this: its starter has ended, and owned it or nothing of it lives."""
        if children.alive(self.starter):
            return False
        return not self.detached or not any(map(children.alive, self.children.values()))

    def cluster(self) -> Cluster:
        """Return the entry as callers see it."""
        return Cluster(
            name=self.name,
            provider=self.provider,
            kubeconfig=Path(self.kubeconfig),
            server=self.server,
            kubectl=Path(self.kubectl) if self.kubectl else None,
            host_address=self.host_address,
            capabilities=Capabilities(**self.capabilities),
            logs=Path(self.logs) if self.logs else None,
            record=Path(self.record) if self.record else None,
        )


class SandboxState:
    """Reads and writes entries under one home."""

    def __init__(self, home: Path) -> None:
        self.clusters = home / "clusters"

    def folder(self, name: str) -> Path:
        """Return the folder of a cluster; it need not exist."""
        return self.clusters / name

    def claim(self, name: str) -> Path:
        """Make the folder of a new cluster and return it; SandboxError if there is one of that name."""
        self.clusters.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = self.folder(name)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            entry = self.entry(name)
            whose = f"provider {entry.provider}" if entry else f"no provider (a crash left {folder})"
            raise AlreadyThereError(f"cluster {name} of {whose} is there already: `gatelift down` ends it") from None
        return folder

    def save(self, entry: ClusterEntry) -> None:
        """Write an entry, whole or not at all, readable by its owner only. Its folder was claimed."""
        folder = self.folder(entry.name)
        scratch = folder / (RECORD + ".new")
        scratch.touch(mode=0o600)
        scratch.write_bytes(msgspec.json.format(msgspec.json.encode(entry)))
        scratch.replace(folder / RECORD)

    def entry(self, name: str) -> ClusterEntry | None:
        """Return the entry of a cluster, or None."""
        try:
            return msgspec.json.decode((self.folder(name) / RECORD).read_bytes(), type=ClusterEntry)
        except FileNotFoundError:
            return None
        except msgspec.MsgspecError as failure:
            raise SandboxError(f"{self.folder(name) / RECORD} is damaged ({failure}): delete the folder") from None

    def entries(self, provider: str | None = None) -> list[ClusterEntry]:
        """Return all entries (of one provider), by name."""
        if not self.clusters.is_dir():
            return []
        found = [self.entry(folder.name) for folder in sorted(self.clusters.iterdir())]
        return [entry for entry in found if entry is not None and provider in (None, entry.provider)]

    def left_over(self, provider: str) -> list[ClusterEntry]:
        """Return what crashes have left. Claimed folders that never got an entry are removed."""
        for folder in self.clusters.iterdir() if self.clusters.is_dir() else ():
            wall = time.time()  # noqa: TID251 (to be compared with a file's time)
            age = wall - folder.stat().st_mtime
            if not (folder / RECORD).exists() and age > CLAIM_SECONDS_MAX:
                self.remove(folder.name)
        return [entry for entry in self.entries(provider) if entry.left_over()]

    def remove(self, name: str) -> None:
        """Delete a cluster's kubeconfig, and its folder with all that is in it."""
        entry = self.entry(name)
        if entry is not None:
            Path(entry.kubeconfig).unlink(missing_ok=True)
        shutil.rmtree(self.folder(name), ignore_errors=True)
