"""Numbers in a WorkerCluster's status that no leader has written: what counts instead, and how ours are put back.

One cluster's. They are found in the version that they stand in, and the next write, conditional on it, has ours in
their place. Neighbours: `cluster_record` (owns it, and decides when that is written), `cluster_numbers` (what a status
counts as).
"""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift.core import texts
from gatelift.core.api.commands import Note
from gatelift.core.clusters import cluster_numbers
from gatelift.core.clusters.linking import Effects, Leading
from gatelift_kube.deciding.writes import EmitEvent
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef


class EditedNumbers:
    """What was found of them, until it is put back, and what own writes have said."""

    def __init__(self, name: str, leading: Leading) -> None:
        self._name = name
        self._leading = leading
        self._forged_version = ""
        """The version whose term, numbers or words no leader has written: the next write puts ours in place."""
        self._edited = ""
        """Which numbers those are, until people are told."""
        self._tried = cluster_numbers.Tried()

    def begin_anew(self) -> None:
        """Forget what was found and tried: a term begins or is over."""
        self._forged_version, self._edited, self._tried = "", "", cluster_numbers.Tried()

    def counted(self, found: WorkerCluster, before: WorkerCluster | None) -> WorkerCluster:
        """Return a version with the numbers that it counts with, after what we know of the same object."""
        if before is None:
            self._tried = cluster_numbers.Tried()
        if before is not None and before.status.term == self._leading.term:  # nobody else has led since
            counts = cluster_numbers.as_written(found.status, before.status, self._tried)
        else:
            counts = cluster_numbers.begun_from(found.status)
        edited = cluster_numbers.edited(found.status, counts)
        if not edited:
            return found
        self._forged_version, self._edited = found.metadata.resource_version, edited
        return msgspec.structs.replace(found, status=counts)

    def of_term(self, found: WorkerCluster, before: int) -> WorkerCluster:
        """Return a version whose term no leader has written as one of the term `before`, or of one before ours."""
        term = self._leading.term
        counts = msgspec.structs.replace(found.status, term=before if before <= term else term - 1)
        self._forged_version = found.metadata.resource_version
        return msgspec.structs.replace(found, status=counts)

    def are_in(self, found: WorkerCluster) -> bool:
        """Say whether this is the version in which they stand."""
        return found.metadata.resource_version == self._forged_version

    def put_back(self, found: WorkerCluster, status: dict[str, Any], out: Effects) -> dict[str, Any]:
        """Return the document of a status with our numbers in the place of those that stand in `found`."""
        if self.are_in(found):
            status = {**cluster_numbers.document(found.status), **status}
            self._tell(found, out)
        self._tried = self._tried.and_then(status)
        return status

    def _tell(self, found: WorkerCluster, out: Effects) -> None:
        """Say at the object which numbers are put back, once."""
        if self._edited:
            ref, text = ObjectRef(WORKER_CLUSTER, ObjectKey("", self._name)), texts.numbers_put_back(self._edited)
            uid, reason = found.metadata.uid, texts.RECORD_PUT_BACK
            out.commands.append(EmitEvent(ref=ref, uid=uid, warning=True, reason=reason, message=text))
            out.commands.append(Note(level="warning", text=text, cluster=self._name))
        self._edited = ""
