"""A person's word that nothing runs any more on a lost worker cluster, as annotations of its WorkerCluster.

It may also be about what ran there before another cluster, or one from a backup, came under its name. Said, then waited
for: the manager answers a word by writing it into the status, from where it takes effect (rule R2), or refuses it with
the reason; then it ends what was placed there. Neighbours: `clusters` has the verb.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
from tenacity import stop_after_attempt

from gatelift.cli.connection import TIMED_OUT, CliError
from gatelift.core.clusters.cluster_facts import CONNECTED, LOST
from gatelift.core.clusters.fencing import (
    ANNOTATION_FENCE_REFUSED,
    ANNOTATION_FENCED_AFTER,
    ANNOTATION_FENCED_BY,
    ANNOTATION_FENCED_THROUGH,
)
from gatelift.core.clusters.identity import doubted_in, vouching
from gatelift.core.state.recovery_values import Told, told
from gatelift.core.texts import FINISHED
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import NotFoundError
from gatelift_kube.objects import conditions
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.process.waiting import until
from gatelift_kube.values.resources import WORKER_CLUSTER, WORKLOAD, ObjectKey, ObjectRef

WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

LOOK_SECONDS = 0.5
"""How often is looked for the answer."""

COUNT_SECONDS = 2.0
"""How often what is left is counted: all Workloads are listed for it."""

STILL_SECONDS = 60.0
"""Without an answer, or without anything having ended, for this long the verb gives up waiting: a leader answers in a
second, and another takes over within half a minute."""

LOOKS = round(STILL_SECONDS / LOOK_SECONDS)


@dataclass(frozen=True, slots=True)
class Word:
    """What was written: nothing of a session up to `session` runs any more, says `who`; 0: of none (`fencing_gone`).

    `of_before`: said of a cluster that is served again, about what its inventory does not list. `after`: the finding of
    a restored management cluster that is not over, "" for none: such a word is said anew after each.
    """

    session: int
    who: str
    of_before: bool = False
    after: str = ""

    def is_taken(self, found: WorkerCluster) -> bool:
        """Say whether the status says so."""
        before = found.status.fenced_through_session
        since = vouching(found.status).fenced_through(self.after) if self.after else before
        return min(before, since) >= self.session


class _User(msgspec.Struct):
    username: str = ""


class _Review(msgspec.Struct):
    user: _User = msgspec.field(name="userInfo", default_factory=_User)


class _Answer(msgspec.Struct):
    status: _Review = msgspec.field(default_factory=_Review)


async def declare_fenced(client: Client, name: str, tell: Callable[[str], None]) -> Word:
    """Write the word, under the name by which the API server knows who says it; wait until it has done its work.

    `tell` gets how many placements are left, whenever that changes. Raises CliError unless the cluster is shown as
    lost, when the word is refused, and when nothing moves any more; NotFoundError when there is no such cluster,
    ConflictError when it has changed meanwhile: it may be back.
    """
    found = await read_cluster(client, name)
    after = await _restore(client)
    asked_through = vouching(found.status).unvouched_through(after) if after else 0
    session, of_before = _sayable(found, asked_through)
    word = Word(session=session, who=found.status.fenced_by, of_before=of_before, after=after)
    if not word.is_taken(found):
        word = replace(word, who=await who_am_i(client))
        annotations = {
            ANNOTATION_FENCED_THROUGH: str(word.session),
            ANNOTATION_FENCED_BY: word.who,
            ANNOTATION_FENCED_AFTER: word.after or None,
            ANNOTATION_FENCE_REFUSED: None,
        }
        body = {"metadata": {"resourceVersion": found.metadata.resource_version, "annotations": annotations}}
        await client.patch(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)), json.dumps(body).encode())
        await _answer(client, name, word)
    await _all_ended(client, name, word, tell)
    return word


async def _restore(client: Client) -> str:
    """Return what names the finding of a restore of the management cluster that is not over; "" for none."""
    try:
        finding = (told(await read_cluster(client, LOCAL_CLUSTER)) or Told()).finding
    except NotFoundError:
        return ""  # it stands nowhere else
    return finding.since if finding is not None else ""


def _sayable(found: WorkerCluster, asked_through: int) -> tuple[int, bool]:
    """Return the session that a word may be about now, and whether it is about what was before who serves it now.

    `asked_through`: what a recovery asks of a name whose doubt was over by itself; 0 for nothing. Raises CliError when
    there is no such session.
    """
    name = found.metadata.name
    connected = conditions.find(found.status.conditions, CONNECTED)
    before = max(doubted_in(found.status) - 1, asked_through)
    if before > 0 and (connected is None or connected.reason != LOST):
        return before, True
    if connected is None or connected.reason != LOST:
        shown = f"shown as {connected.reason}" if connected else "never connected"
        raise CliError(f"{name}: not lost ({shown}); only a lost cluster can be declared fenced: wait until it is")
    return found.status.session, False


async def _answer(client: Client, name: str, word: Word) -> None:
    """Wait until the manager has taken the word. Raises CliError when it has not, with what becomes of it."""

    async def taken() -> bool:
        found = await read_cluster(client, name)
        if word.is_taken(found):
            return True
        refused = found.metadata.annotations.get(ANNOTATION_FENCE_REFUSED, "")
        if refused:
            raise CliError(f"{name}: refused: {refused}")
        if found.metadata.annotations.get(ANNOTATION_FENCED_THROUGH) != str(word.session):
            raise CliError(f"{name}: somebody took the word back before a manager answered; nothing was ended by it")
        return False

    if await until(taken, LOOK_SECONDS, stop_after_attempt(LOOKS)):
        return
    text = f"{name}: no manager has answered for {STILL_SECONDS:g} s; it counts when one leads, if {name} is then still"
    raise CliError(f"{text} lost in session {word.session}: 'gatelift cluster list' shows it", TIMED_OUT)


async def _all_ended(client: Client, name: str, word: Word, tell: Callable[[str], None]) -> None:
    """Wait until no record says any more that something is placed there. Raises CliError when that does not move."""
    before, still = -1, 0.0
    while True:
        found = await read_cluster(client, name)
        left = found.status.unexplained
        if not word.of_before:
            left = await _placed(client, name) + len(found.status.predecessors)
        if not left:
            return
        if found.status.session != word.session and not word.of_before:
            text = (
                f"{name}: came back in session {found.status.session}; of its {left} placements it has to tell itself"
            )
            raise CliError(text)
        if left != before:
            tell(f"{left} placements on {name} are left")
            before, still = left, 0.0
        if still >= STILL_SECONDS:
            text = f"{name}: {left} placements have not ended for {STILL_SECONDS:g} s; the word stands and the next"
            raise CliError(f"{text} manager goes on with it: 'gatelift cluster fenced {name}' waits again", TIMED_OUT)
        await asyncio.sleep(COUNT_SECONDS)
        still += COUNT_SECONDS


async def placements_left(client: Client, name: str) -> int:
    """Return of how many placements on a cluster nobody has told the end yet. Raises NotFoundError without it."""
    return len((await read_cluster(client, name)).status.predecessors) + await _placed(client, name)


async def _placed(client: Client, name: str) -> int:
    """Return of how many Workloads the record says that they are placed on this cluster."""
    left = 0
    async for page in client.list(WORKLOAD):
        for served in page.items:
            found = served.object
            if isinstance(found, Workload) and found.status.cluster_name == name:
                left += not conditions.is_true(found.status.conditions, FINISHED)
    return left


async def read_cluster(client: Client, name: str) -> WorkerCluster:
    """Return a WorkerCluster. Raises NotFoundError."""
    found = (await client.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)))).object
    if not isinstance(found, WorkerCluster):
        raise CliError(f"{name}: the API server's answer is no WorkerCluster")
    return found


async def who_am_i(client: Client) -> str:
    """Return the name by which the API server knows who asks."""
    document = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await client.raw("POST", WHO_AM_I, body=json.dumps(document).encode())
    return msgspec.json.decode(answer, type=_Answer).status.user.username or "unknown"
