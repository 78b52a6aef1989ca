"""The WorkerCluster of the management cluster: made by who leads, so that its sessions are like any other's. Pure.

Neighbour: `links` (owns it, and says whether there is one).
"""

from __future__ import annotations

import json

from gatelift.core.clusters.cluster_record import RETRY_SECONDS
from gatelift.core.clusters.linking import Effects, Leading
from gatelift_kube.deciding.writes import Create, WriteDone, WriteFailed
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef


class LocalCluster:
    """The one write that makes it, and when it is tried again."""

    def __init__(self, leading: Leading) -> None:
        self._leading = leading
        self._synced = False
        self._write_id: int | None = None
        self.retry_at: float | None = None

    def owns_write(self, write_id: int) -> bool:
        """Say whether this is its write in flight."""
        return write_id == self._write_id

    def synced(self) -> None:
        """Take that all WorkerClusters that there are have been seen."""
        self._synced = True

    def make(self, found: WorkerCluster | None, now: float, out: Effects) -> None:
        """Ask for it where there is none; `found` is what is known of it."""
        if not (self._synced and found is None and self._write_id is None and self._leading.term):
            return
        if not self._leading.valid(now):
            self.retry_at = now + RETRY_SECONDS
            return
        self._write_id = self._leading.ids.take()
        document = {
            "apiVersion": WORKER_CLUSTER.api_version,
            "kind": WORKER_CLUSTER.kind,
            "metadata": {"name": LOCAL_CLUSTER},
            "spec": {},
        }
        ref = ObjectRef(WORKER_CLUSTER, ObjectKey("", LOCAL_CLUSTER))
        out.commands.append(Create(write_id=self._write_id, ref=ref, body=json.dumps(document).encode()))

    def tick(self, found: WorkerCluster | None, now: float, out: Effects) -> None:
        """Try again when it is time."""
        if self.retry_at is None or self.retry_at > now:
            return
        self.retry_at = None
        try:
            self.make(found, now, out)
        except Exception:
            self.retry_at = now + RETRY_SECONDS
            raise

    def wrote(self, event: WriteDone | WriteFailed, now: float) -> None:
        """Take the outcome of the write."""
        self._write_id = None
        if isinstance(event, WriteFailed):
            self.retry_at = now + RETRY_SECONDS

    def step_down(self) -> None:
        """Make nothing any more."""
        self._write_id = self.retry_at = None
