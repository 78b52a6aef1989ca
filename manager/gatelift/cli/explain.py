"""`gatelift explain WORKLOAD`: why it is where it is, from the objects themselves, with the caller's own rights."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gatelift.cli import gathered
from gatelift.cli.chain import obstacles
from gatelift.cli.connection import NOT_FOUND, CliError, chosen_namespace, run
from gatelift.cli.gathered import GatheredExplanation
from gatelift.cli.leader import tell_if_absent
from gatelift.cli.listing import every, maker_of, placement_of, situation_of
from gatelift.cli.render import Output, Typed, age, dump
from gatelift.cli.replica import replica
from gatelift.cli.sentences import CHARS_MAX
from gatelift.cli.slices import ShownChains, SliceExplanation, chain_name, home_of
from gatelift.cli.slices import explanation_of as explanation_of_slice
from gatelift.cli.target import target_of
from gatelift.cli.unreachable import halted, unreachable
from gatelift.cli.waiting import WaitingExplanation, waiting_of
from gatelift.core import texts
from gatelift.core.records import drains
from gatelift.core.told import event_texts
from gatelift_kinds.shared import pod_trouble, slices
from gatelift_kinds.shared.made_for import owners_of
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import ForbiddenError
from gatelift_kube.objects import conditions
from gatelift_kube.objects.kueue import Admission, Workload
from gatelift_kube.objects.meta import OwnerReference
from gatelift_kube.values.plain_text import plain
from gatelift_kube.values.resources import WORKLOAD, ObjectKey

HALTED_OUTLOOK = "nothing at all is placed now, whatever the quota"
GROWTH_OUTLOOKS = {
    texts.NO_CLUSTER: "waits for the cluster on which it runs, not for quota: tried again when that has more to give",
    texts.GROWTH_WAITS: "is not asked for before what it waits for is over, whatever the quota",
}
"""Of a growth that waits for something else than quota, by the reason that its Workload says."""
NO_CLUSTER_OUTLOOK = "waits for a worker cluster, not for quota: tried again when one changes, and every few minutes"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadExplanation:
    """What is told of one workload; the fields are the keys of `-o json`."""

    workload: str
    made_for: str
    state: str
    reason: str
    because: str
    held: str
    cluster: str
    epoch: int
    queue: str
    quota: str
    reclaimed: str
    checks: tuple[str, ...]
    history: tuple[str, ...]
    path: tuple[str, ...] = ()
    halted: str = ""
    unreachable: tuple[str, ...] = ()
    pods: str = ""
    drains: str = ""
    members: GatheredExplanation | None = None
    waiting: WaitingExplanation | None = None
    slices: SliceExplanation | None = None


def explain(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(help="Name of a workload, or of the pod or Job it was made for (also pod/NAME, job/NAME).")
    ],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the object; the context's without it.")
    ] = "",
    output: Annotated[Output, typer.Option("--output", "-o", help="table, json or yaml")] = Output.TABLE,
    config: Annotated[
        Path | None, typer.Option("--config", help="The manager's file, where it is not in its ConfigMap.")
    ] = None,
) -> None:
    """Say why a workload is not running (its place, what it lacks, whom it would preempt), or where it is."""
    target = target_of(context)

    async def explained(client: Client) -> WorkloadExplanation:
        return await _explained(client, namespace or await chosen_namespace(target), name, config)

    explanation = run(target, explained)
    if output is Output.TABLE:
        _print(explanation)
    else:
        dump(asdict(explanation), output)


async def _explained(client: Client, namespace: str, name: str, config: Path | None) -> WorkloadExplanation:
    now = dt.datetime.now(dt.UTC)
    try:
        workload = await _find(client, namespace, name)
    except CliError:
        told = await _without_workload(client, ObjectKey(namespace, name.rpartition("/")[2]), now)
        if told is None:
            raise
        await tell_if_absent(client)
        return told
    await tell_if_absent(client)
    told = replace(explanation_of(workload, now), members=await gathered.explained(client, workload, now))
    told, grows = await _resized(client, workload, told)
    if told.state == texts.FINISHED:
        return told
    if told.cluster:
        ending = told.state == texts.EVICTED or workload.metadata.deletion_timestamp is not None
        told = replace(told, unreachable=await unreachable(client, told.cluster, now, ending=ending))
    told = replace(told, halted=await halted(client))
    if told.quota and grows is None:
        return told
    waiting = waiting_of(await replica(client, config), (grows or workload).metadata.uid)
    if waiting is not None and grows is not None:
        waiting = replace(waiting, outlook=GROWTH_OUTLOOKS.get(situation_of(grows).reason, waiting.outlook))
    elif waiting is not None and told.reason == texts.NO_CLUSTER:
        waiting = replace(waiting, outlook=NO_CLUSTER_OUTLOOK)
    if waiting is not None and told.halted:
        waiting = replace(waiting, outlook=HALTED_OUTLOOK)
    return replace(told, waiting=waiting, path=await obstacles(client, workload))


async def _resized(
    client: Client, workload: Workload, told: WorkloadExplanation
) -> tuple[WorkloadExplanation, Workload | None]:
    """Return the same with what is told of slices, and the one that waits to grow what runs, which it may be itself."""
    if chain_name(workload) is None:
        return told, None
    chains = ShownChains([each async for each in every(client, WORKLOAD, Workload, workload.metadata.namespace)])
    found, target, before = explanation_of_slice(chains, workload), chains.target(workload), chains.before(workload)
    cluster = placement_of(before if before is not None else workload).cluster
    if found is not None and (target is not None or before is not None) and cluster:
        found = replace(found, home=await home_of(client, cluster))
    grows = workload if before is not None else target if told.quota else None  # what is queued again waits itself
    return replace(told, slices=found), grows


async def _without_workload(client: Client, key: ObjectKey, now: dt.datetime) -> WorkloadExplanation | None:
    """Return what is told of several objects that have no Workload yet, by the name that it will have or by one's own.

    None where there are none, or the caller may not see them.
    """
    try:
        found = await gathered.found_at(client, key, member=key.name)
    except ForbiddenError:
        return None
    if found is None:
        return None
    told = gathered.explanation_of(found.gathered, None, now)
    return WorkloadExplanation(
        workload=str(found.key),
        made_for=f"the pods of group {found.key.name}",
        state=texts.PENDING,
        reason=event_texts.NOT_COMPOSED if told.lacks else "",
        because=told.lacks or "its Workload is about to be made",
        held="",
        cluster="",
        epoch=0,
        queue=found.gathered.queue_name,
        quota="",
        reclaimed="",
        checks=(),
        history=(),
        members=replace(told, lacks=""),
    )


async def _find(client: Client, namespace: str, name: str) -> Workload:
    """Return the workload that is meant: by its own name first, else the present one made for an object so named."""
    kind, _, bare = name.rpartition("/")
    kind = kind.lower().rstrip("s")
    made: list[Workload] = []
    async for workload in every(client, WORKLOAD, Workload, namespace):
        if workload.metadata.name == bare and kind in {"", "workload", "wl"}:
            return workload  # type: ignore[no-any-return]  # `every` yields what it was asked for
        if any(each.name == bare and kind in {"", each.kind.lower()} for each in _named_by(workload)):
            made.append(workload)
    if not made:
        made_for = f"for a {kind} of that name" if kind not in {"", "workload", "wl"} else "for an object of that name"
        raise CliError(
            f"no workload {namespace}/{bare}, and none made {made_for}: 'gatelift get workloads' lists those of all"
            f" namespaces (-n chooses one); an object gets one by the label kueue.x-k8s.io/queue-name",
            NOT_FOUND,
        )
    return max(made, key=_present)


def _named_by(workload: Workload) -> tuple[OwnerReference, ...]:
    """Return for which objects a Workload was made; one of several names each of them besides."""
    members = workload.metadata.owner_references if gathered.is_marked(workload) else ()
    return (*owners_of(workload), *members)


def _present(workload: Workload) -> tuple[bool, bool, str]:
    """Return an order in which unfinished workloads come last, later ones after earlier ones.

    What waits to grow another one comes before that: it is told with it.
    """
    grows = workload.status.admission is None and slices.replaced_by(workload) is not None
    return situation_of(workload).state != "Finished", not grows, workload.metadata.creation_timestamp or ""


def explanation_of(workload: Workload, now: dt.datetime) -> WorkloadExplanation:
    """Return what is told of a workload at a moment."""
    situation, placement = situation_of(workload), placement_of(workload)
    ordered = sorted(workload.status.conditions, key=lambda each: each.last_transition_time or "")
    return WorkloadExplanation(
        workload=f"{workload.metadata.namespace}/{workload.metadata.name}",
        made_for=maker_of(workload),
        state=situation.state,
        reason=situation.reason,
        because=situation.message,
        held=_said(workload, texts.HELD),
        cluster=placement.cluster,
        pods=_said(workload, pod_trouble.CONDITION),
        drains=_said(workload, drains.CONDITION),
        epoch=placement.epoch,
        queue=workload.spec.queue_name,
        quota=_quota(workload.status.admission),
        reclaimed=_reclaimed(workload),
        checks=tuple(
            Typed(
                f"{each.name} {each.state}{f': {each.message}' if each.message else ''}",
                {"name": each.name, "state": each.state, "message": each.message},
            )
            for each in workload.status.admission_checks
        ),
        history=tuple(
            Typed(
                f"{age(each.last_transition_time, now)} ago: {each.type}={each.status} ({each.reason})"
                f"{f' {each.message}' if each.message else ''}",
                {
                    "type": each.type,
                    "status": each.status,
                    "reason": each.reason,
                    "message": each.message,
                    "at": each.last_transition_time,
                },
            )
            for each in ordered
        ),
    )


def _said(workload: Workload, type_: str) -> str:
    """Return what a condition of ours says that is there for as long as it is true, "" where it is not."""
    said = conditions.find(workload.status.conditions, type_)
    return f"{said.reason}: {said.message}" if said is not None and said.status == conditions.TRUE else ""


def _quota(admission: Admission | None) -> str:
    if admission is None:
        return ""
    parts = [
        f"{each.name}: "
        + ", ".join(f"{amount} {what}" for what, amount in each.resource_usage.items())
        + f" from {', '.join(sorted(set(each.flavors.values()))) or 'no flavor'}"
        for each in admission.pod_set_assignments
    ]
    return f"{admission.cluster_queue} ({'; '.join(parts)})"


def _reclaimed(workload: Workload) -> str:
    """Return of how many pods the quota is free again while the others run (KEP-78), "" where of none.

    Of those that were granted: the status counts from what was asked for, which never had any.
    """
    admission = workload.status.admission
    if admission is None:
        return ""
    asked = {one.name: one.count for one in workload.spec.pod_sets}
    granted = {
        one.name: asked.get(one.name, 0) if one.count is None else one.count for one in admission.pod_set_assignments
    }
    over = {
        one.name: min(granted[one.name], one.count - max(0, asked.get(one.name, 0) - granted[one.name]))
        for one in workload.status.reclaimable_pods
        if one.name in granted
    }
    parts = [f"{name}: {count} of {granted[name]} pods are done" for name, count in over.items() if count > 0]
    return f"{'; '.join(parts)}, and their quota is free" if parts else ""


def _waiting(told: WaitingExplanation | None, *, grows: bool) -> list[tuple[str, str]]:
    """Return what is told of a waiting workload, as lines; `grows`: of the growth of one that runs."""
    if told is None:
        return []
    unseen = f"you may not read {', '.join(told.not_seen)}" if told.not_seen else ""
    of_it = "the growth: " if grows else ""
    return [
        ("place", f"{of_it}{told.place}" if told.place else ""),
        ("outlook", f"{of_it}{told.outlook}" if told.outlook else ""),
        *(("" if index else "lacks", each) for index, each in enumerate(told.lacks)),
        *(("" if index else "preempts", each) for index, each in enumerate(told.would_preempt)),
        *(("" if index else "before", each) for index, each in enumerate(told.ahead)),
        ("not seen", unseen),
    ]


def _slices(told: SliceExplanation | None) -> list[tuple[str, str]]:
    """Return what is told of a slice, as lines."""
    if told is None:
        return []
    return [
        ("size", told.size),
        ("resizes", told.resizes),
        ("growth", told.growth),
        *(("", each) for each in told.home),
        *(("" if index else "past", each) for index, each in enumerate(told.past)),
    ]


def _print(told: WorkloadExplanation) -> None:
    console = Console(highlight=False)
    reason = f" ({told.reason})" if told.reason else ""
    facts = [
        ("made for", told.made_for),
        ("because", told.because),
        ("held", told.held),
        ("halted", told.halted),
        ("cluster", told.cluster),
        *(("", each) for each in told.unreachable),
        ("pods", told.pods),
        *gathered.lines(told.members),
        *_slices(told.slices),
        ("drains", told.drains),
        ("epoch", str(told.epoch) if told.epoch else ""),
        ("queue", told.queue),
        *(("" if index else "path", each) for index, each in enumerate(told.path)),
        ("quota", told.quota),
        ("freed", told.reclaimed),
        *_waiting(told.waiting, grows=bool(told.quota)),
        *(("check", each) for each in told.checks),
        *(("" if index else "history", each) for index, each in enumerate(told.history)),
    ]
    facts = [(name, plain(value, CHARS_MAX)) for name, value in facts]
    console.print(Text.assemble((told.workload, "bold"), plain(f": {told.state}{reason}")), soft_wrap=True)
    if not console.is_terminal:  # nothing is folded for a pipe
        for name, value in facts:
            if value:
                console.print(Text(f"  {name:<8}  {value}"), soft_wrap=True)
        return
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts:
        if value:
            grid.add_row(f"  {name}", Text(value))
    console.print(grid)
