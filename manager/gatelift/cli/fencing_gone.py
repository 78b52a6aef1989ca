"""A person's word about a cluster whose WorkerCluster was deleted while a recovery waits for it.

There is no object to say it on, nor a session that it could be about: it stands on `local`, and names the finding.
Said, then waited for. Neighbours: `fencing` (of all other clusters), `recovery_asked` in the core (what is written).
"""

from __future__ import annotations

import msgspec
from tenacity import stop_after_attempt

from gatelift.cli.connection import TIMED_OUT, CliError
from gatelift.cli.fencing import LOOK_SECONDS, LOOKS, STILL_SECONDS, Word, read_cluster, who_am_i
from gatelift.core.state.recovery_asked import ANNOTATION_FENCED_GONE, Without, without
from gatelift.core.state.recovery_values import Found, Told, told
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import NotFoundError
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_kube.process.waiting import until
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef


async def declare_gone(client: Client, name: str) -> Word | None:
    """Write the word and wait until it is taken; None where no recovery asks for it, and nothing is written.

    Raises CliError when no manager takes it; ConflictError when `local` has changed meanwhile.
    """
    try:
        local = await read_cluster(client, LOCAL_CLUSTER)
    except NotFoundError:
        return None
    since = _asked(local, name)
    if not since:
        return None
    said, who = without(local), await who_am_i(client)
    names = said.names if said.since == since else {}
    text = msgspec.json.encode(Without(since=since, names={**names, name: who})).decode()
    metadata = {"resourceVersion": local.metadata.resource_version, "annotations": {ANNOTATION_FENCED_GONE: text}}
    await client.patch(
        ObjectRef(WORKER_CLUSTER, ObjectKey("", LOCAL_CLUSTER)), msgspec.json.encode({"metadata": metadata})
    )

    async def taken() -> bool:
        return _asked(await read_cluster(client, LOCAL_CLUSTER), name) != since

    if await until(taken, LOOK_SECONDS, stop_after_attempt(LOOKS)):
        return Word(session=0, who=who, after=since)
    text = f"{name}: no manager has answered for {STILL_SECONDS:g} s; the word stands, and counts when one leads"
    raise CliError(text, TIMED_OUT)


def _asked(local: WorkerCluster, name: str) -> str:
    """Return the finding after which a recovery asks about a cluster whose WorkerCluster is gone, "" for none."""
    shown = told(local) or Told()
    if shown.finding is None or not shown.clusters.get(name, Found()).gone:
        return ""
    return shown.finding.since
