"""`gatelift recover`: what the manager found of a management cluster that was restored from a backup, and going on.

Four things, each of which may be said again: show (without options), `--restored` (a person's word that it was, which
halts as a proof does), `--go-on` (a person's word, written on the WorkerCluster `local`; then what the manager does is
told until it is done), `--stop CLUSTER` (a word about what runs there and no record explains). Nothing is decided here.
Neighbour: `recovery_texts` (says what was found).
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated

import msgspec
import typer

from gatelift.cli.connection import NOT_FOUND, TIMED_OUT, CliError, run
from gatelift.cli.fencing import who_am_i
from gatelift.cli.render import Output, show
from gatelift.cli.sentences import say
from gatelift.cli.target import target_of
from gatelift.core.clusters.identity import vouching
from gatelift.core.conclusions import recovery_texts
from gatelift.core.records import epochs
from gatelift.core.state.recovery_values import (
    ANNOTATION_RECOVER,
    ANNOTATION_RESTORED,
    ANNOTATION_STOP_UNEXPLAINED,
    EPOCHS_MAX,
    Finding,
    Found,
    RecoverWord,
    Told,
    is_fenced,
    told,
    word,
)
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import NotFoundError
from gatelift_kube.objects import conditions
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.process.clock import wall
from gatelift_kube.values import timestamps
from gatelift_kube.values.resources import WORKER_CLUSTER, WORKLOAD, ObjectKey, ObjectRef

EPOCHS_ABOVE = 1000
"""How far epochs are raised above the highest that the record knows: more attempts than one workload has between a
backup and its restore."""

LOOK_SECONDS = 0.5
"""How often is looked how far it has come."""

STILL_SECONDS = 400.0
"""Nothing having changed for this long the verb ends; saying it again goes on waiting. A cluster that does not come
back is lost within a minute; a list proves nothing before each node was heard of since its agent watches, and kubelets
with nothing new tell of theirs every five minutes."""


@dataclass(frozen=True, slots=True)
class RecoverySituation:
    """The WorkerClusters as they are, and what stands on `local`."""

    clusters: tuple[WorkerCluster, ...]
    told: Told
    word: RecoverWord | None

    @property
    def finding(self) -> Finding | None:
        """What was found and is not over."""
        return self.told.finding

    @property
    def said(self) -> bool:
        """Whether a person has said to go on after this very finding."""
        return self.finding is not None and self.word is not None and self.word.since == self.finding.since

    @property
    def missing(self) -> tuple[str, ...]:
        """Clusters that have not said yet what runs there, and are not declared fenced since."""
        return tuple(
            found.metadata.name
            for found in self.clusters
            if found.status.session and not self._found(found).heard and not self._answered(found)
            if not self._found(found).gone
        )

    @property
    def unvouched(self) -> tuple[str, ...]:
        """Clusters whose list does not tell what ran under their name before, and of which no person has said it."""
        return tuple(
            found.metadata.name
            for found in self.clusters
            if self.finding is not None
            and not self._answered(found)
            and vouching(found.status).unvouched_through(self.finding.since)
        )

    @property
    def unproven(self) -> tuple[str, ...]:
        """Clusters whose list proves nothing of what it does not name, by their agents' own word."""
        return tuple(name for name in self.missing if self.told.clusters.get(name, Found()).unproven)

    @property
    def awaited(self) -> tuple[str, ...]:
        """Clusters for which going on waits: for their own word, or for a person's about what was before."""
        return tuple(sorted({*self.missing, *self.unvouched, *self.gone}))

    @property
    def gone(self) -> tuple[str, ...]:
        """Clusters whose WorkerCluster was deleted, or made anew, and of which that is not answered."""
        return tuple(name for name, found in sorted(self.told.clusters.items()) if found.gone)

    def rows(self) -> list[tuple[object, ...]]:
        """Return what was found, by cluster."""
        states = dict.fromkeys(self.gone, "Deleted") | {each.metadata.name: state_of(each) for each in self.clusters}
        return [
            (name, states[name], "yes" if one.heard else "no", one.listed, one.ahead, one.unexplained)
            for name in sorted(states)
            for one in (self.told.clusters.get(name, Found()),)
        ]

    @property
    def told_before(self) -> tuple[str, ...]:
        """Clusters of which the restored record has a word, of before the restore was found: it is to be said again."""
        return tuple(
            found.metadata.name
            for found in self.clusters
            if found.metadata.name in self.missing and found.status.fenced_through_session >= found.status.session
        )

    def _answered(self, found: WorkerCluster) -> bool:
        """Say whether a person has answered for the cluster since the restore was found."""
        return self.finding is not None and is_fenced(found, self.finding)

    def _found(self, found: WorkerCluster) -> Found:
        return self.told.clusters.get(found.metadata.name, Found())


def recover(
    context: typer.Context,
    restored: Annotated[
        bool, typer.Option("--restored", help="Say that it was restored: nothing is placed before you go on.")
    ] = False,
    go_on: Annotated[
        bool, typer.Option("--go-on", help="Raise term and epochs, hear all clusters, then dispatch again.")
    ] = False,
    stop: Annotated[
        str, typer.Option(metavar="CLUSTER", help="Stop what runs on this cluster and no record explains.")
    ] = "",
    output: Annotated[Output, typer.Option("--output", "-o")] = Output.TABLE,
) -> None:
    """Show what was found of a restored management cluster, and go on when a person has looked.

    Nothing that runs is stopped, except by --stop.
    """
    target = target_of(context)
    if restored:
        run(target, _say_restored)
        say("whoever leads places nothing before you have looked: gatelift recover, then gatelift recover --go-on")
        return
    if stop:
        session = run(target, lambda client: _stop(client, stop))
        say(f"what {stop} listed in session {session} and no record explains is being stopped")
        return
    if go_on:
        run(target, _go_on)
        return
    found = run(target, _look)
    _show(found, output)


def _show(found: RecoverySituation, output: Output) -> None:
    show(
        ("Cluster", "State", "Heard", "Placements", "Later", "Unexplained"),
        found.rows(),
        output,
        nothing="No worker clusters.",
    )
    if output is Output.TABLE:
        say()
        say(_advice(found))


def _advice(found: RecoverySituation) -> str:
    finding = found.finding
    if finding is None and found.told.waits:
        return f"No restore is proven. {found.told.waits}"
    if finding is None:
        return "No sign of a restore that is not over: nothing is held back for one."
    asks = "".join(f"\n{recovery_texts.unvouched(name)}" for name in found.unvouched)
    asks += "".join(f"\n{recovery_texts.fenced_before(name)}" for name in found.told_before)
    asks += "".join(f"\n{recovery_texts.gone(name)}" for name in found.gone)
    asks += "".join(f"\n{recovery_texts.list_proves_nothing(name)}" for name in found.unproven)
    if found.said:
        waits = f"waits for {', '.join(found.awaited)}" if found.awaited else f"stage {found.told.stage.value}"
        return (
            f"Found {finding.since}; a person has said to go on: {waits}. 'gatelift recover --go-on' follows it.{asks}"
        )
    return (
        f"Found {finding.since}: {finding.why}\n"
        "Look what runs on the clusters above; the record does not know the placements under Later and Unexplained."
        f"{asks}\nThen: gatelift recover --go-on"
    )


async def _look(client: Client) -> RecoverySituation:
    found = []
    async for page in client.list(WORKER_CLUSTER):
        found += [each.object for each in page.items if isinstance(each.object, WorkerCluster)]
    found.sort(key=lambda each: each.metadata.name)
    local = next((each for each in found if each.metadata.name == LOCAL_CLUSTER), None)
    if local is None:
        text = "no WorkerCluster local: start the manager, which makes it"
        raise CliError(text, NOT_FOUND)
    return RecoverySituation(tuple(found), told(local) or Told(), word(local))


async def _say_restored(client: Client) -> None:
    """Say that the management cluster was restored, also while no manager runs; CliError where there is no `local`."""
    await _look(client)
    text = f"{await who_am_i(client)} at {timestamps.to_micro_text(wall())}"
    await _annotate(client, LOCAL_CLUSTER, ANNOTATION_RESTORED, text)


async def _go_on(client: Client) -> None:
    """Say the word, unless it is said, and tell how far it has come until it is over."""
    found = await _look(client)
    finding = found.finding
    if finding is None:
        say("No sign of a restore that is not over: there is nothing to go on with.")
        return
    if not found.said:
        said = RecoverWord(since=finding.since, epochs=await _epochs(client), who=await who_am_i(client))
        await _annotate(client, LOCAL_CLUSTER, ANNOTATION_RECOVER, msgspec.json.encode(said).decode())
        say(f"epochs are raised to {said.epochs}, says {said.who}; whoever leads next raises term and counter")
    await _follow(client, finding)
    say("recovered: dispatch goes on")


async def _follow(client: Client, finding: Finding) -> None:
    """Tell how far it has come until it is over; CliError where it stands still, or another restore was found."""
    before, still = "", 0.0
    while True:
        found = await _look(client)
        if found.finding is None:
            return
        if found.finding.since != finding.since:
            raise CliError(
                f"{found.finding.why}. That was found at {found.finding.since}, after what you went on from: all "
                "dispatch has halted anew. Look with 'gatelift recover', then say this again"
            )
        now = f"{found.told.stage.value}: {', '.join(found.awaited) or 'all clusters heard'}"
        if now != before:
            say(now)
            before, still = now, 0.0
        if still >= STILL_SECONDS:
            lost = ", ".join(found.awaited) or "the manager"
            text = f"nothing has changed for {STILL_SECONDS:g} s; {lost} did not say what runs there"
            raise CliError(
                f"{text}: mend it, or look there and say 'gatelift cluster fenced NAME'; then say this again", TIMED_OUT
            )
        await asyncio.sleep(LOOK_SECONDS)
        still += LOOK_SECONDS


async def _epochs(client: Client) -> int:
    """Return an epoch above all that the record knows."""
    highest = 0
    async for page in client.list(WORKLOAD):
        for each in page.items:
            if isinstance(each.object, Workload):
                highest = max(highest, epochs.annotated(each.object), epochs.used(each.object))
    return min(highest + EPOCHS_ABOVE, EPOCHS_MAX)


async def _stop(client: Client, name: str) -> int:
    """Write the word to stop what nothing explains; return the session whose inventory it is about."""
    try:
        served = await client.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)))
    except NotFoundError as error:
        text = f"no WorkerCluster {name}: 'gatelift cluster list' shows those that are there"
        raise CliError(text, NOT_FOUND) from error
    found = served.object
    if not isinstance(found, WorkerCluster) or not found.status.session:
        raise CliError(f"{name}: its agent has never had a session, so nothing is known of what runs there")
    await _annotate(client, name, ANNOTATION_STOP_UNEXPLAINED, str(found.status.session))
    return found.status.session


async def _annotate(client: Client, name: str, annotation: str, text: str) -> None:
    body = {"metadata": {"annotations": {annotation: text}}}
    await client.patch(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)), json.dumps(body).encode())


def state_of(found: WorkerCluster) -> str:
    """Return how a cluster is shown."""
    connected = conditions.find(found.status.conditions, "Connected")
    return connected.reason if connected is not None else "NeverConnected"
