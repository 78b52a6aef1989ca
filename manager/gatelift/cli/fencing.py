"""A person's word that nothing runs any more on a lost worker cluster, as annotations of its WorkerCluster.

Neighbours: `clusters` has the verb; `gatelift.core.link` takes the word for a LOST cluster and for sessions that are
over, and writes it into the status, from where it takes effect (rule R2).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import msgspec

from gatelift.cli.connection import CliError
from gatelift.core.cluster_status import ANNOTATION_FENCED_BY, ANNOTATION_FENCED_THROUGH, CONNECTED
from gatelift_kube import conditions
from gatelift_kube.client import Client
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.resources import WORKER_CLUSTER, ObjectKey, ObjectRef

LOST = "Lost"
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@dataclass(frozen=True, slots=True)
class Word:
    """What was written: nothing of a session up to `session` runs any more, says `who`."""

    session: int
    who: str


class _User(msgspec.Struct):
    username: str = ""


class _Review(msgspec.Struct):
    user: _User = msgspec.field(name="userInfo", default_factory=_User)


class _Answer(msgspec.Struct):
    status: _Review = msgspec.field(default_factory=_Review)


async def declare_fenced(client: Client, name: str) -> Word:
    """Write the word for the cluster's last session, under the name by which the API server knows who says it.

    Raises CliError unless the cluster is shown as lost (the manager would take the word later, when it may be untrue),
    NotFoundError when there is none, ConflictError when it has changed meanwhile: it may be back.
    """
    served = await client.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)))
    found = served.object
    if not isinstance(found, WorkerCluster):
        raise CliError(f"{name}: the API server's answer is no WorkerCluster")
    connected = conditions.find(found.status.conditions, CONNECTED)
    if connected is None or connected.reason != LOST:
        shown = f"shown as {connected.reason}" if connected else "never connected"
        raise CliError(f"{name}: not lost ({shown}); only a lost cluster can be declared fenced: wait until it is")
    word = Word(session=found.status.session, who=await _who_am_i(client))
    annotations = {ANNOTATION_FENCED_THROUGH: str(word.session), ANNOTATION_FENCED_BY: word.who}
    body = {"metadata": {"resourceVersion": found.metadata.resource_version, "annotations": annotations}}
    await client.patch(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)), json.dumps(body).encode())
    return word


async def _who_am_i(client: Client) -> str:
    document = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await client.raw("POST", WHO_AM_I, body=json.dumps(document).encode())
    return msgspec.json.decode(answer, type=_Answer).status.user.username or "unknown"
