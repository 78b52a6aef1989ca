"""`gatelift top`: queues live: who waits, who runs, how full each flavor is. From the queues' own statuses.

Those are written by the manager at most once a second per queue, so looking more often shows nothing new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gatelift.cli.connection import run
from gatelift.cli.ghosts import ghost_of
from gatelift.cli.listing import every
from gatelift.cli.render import Output, dump, show
from gatelift.cli.target import target_of
from gatelift_admission.values import amounts
from gatelift_kube.api.client import Client
from gatelift_kube.objects import conditions
from gatelift_kube.objects.kueue import ClusterQueue, FlavorUsage, LocalQueue
from gatelift_kube.values.resources import CLUSTER_QUEUE, LOCAL_QUEUE

SECONDS_MIN = 0.2
"""Looking more often costs the API server and shows nothing new."""
BAR_CELLS = 12
FULL, NEARLY = 1.0, 0.8
"""Where the bar turns red, and where yellow."""
PERCENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One resource in one flavor of a queue. `load` is reserved of nominal, None where there is no quota of its own.

    `ghost`: what may still be occupied after its quota was freed (KEP-6143), "" of nothing.
    """

    flavor: str
    resource: str
    reserved: str
    used: str
    nominal: str
    borrowed: str
    load: float | None
    ghost: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLine:
    """One queue; the fields are the keys of `-o json`."""

    kind: str
    queue: str
    of: str
    pending: int
    reserving: int
    admitted: int
    weighted_share: int | None
    problem: str
    usage: tuple[Usage, ...]


def top(
    context: typer.Context,
    once: Annotated[bool, typer.Option("--once", help="Show the queues once and end.")] = False,
    local: Annotated[bool, typer.Option("--local", "-l", help="LocalQueues too.")] = False,
    seconds: Annotated[float, typer.Option("--every", min=SECONDS_MIN, help="Seconds between two looks.")] = 1.0,
    output: Annotated[Output, typer.Option("--output", "-o", help="table, json or yaml; json and yaml once")] = (
        Output.TABLE
    ),
) -> None:
    """Show queues live: pending, admitted, and how full each flavor is."""
    console = Console(highlight=False)
    if output is Output.TABLE and not once and console.is_terminal:
        run(target_of(context), lambda client: live(client, console, seconds, local=local))
        return
    found = run(target_of(context), lambda client: lines(client, local=local))
    if output is Output.TABLE:
        _print(found)
    else:
        dump([asdict(each) for each in found], output)


async def live(client: Client, console: Console, seconds: float, *, local: bool) -> None:
    """Show the queues in place until stopped."""
    with Live(console=console, auto_refresh=False, screen=False) as shown:
        while True:
            shown.update(frame(await lines(client, local=local)), refresh=True)
            await asyncio.sleep(seconds)


async def lines(client: Client, *, local: bool) -> list[QueueLine]:
    """Return one line per ClusterQueue, and per LocalQueue if asked for, in order of name."""
    found = [_cluster_queue(queue) async for queue in every(client, CLUSTER_QUEUE, ClusterQueue)]
    if local:
        found += [_local_queue(queue) async for queue in every(client, LOCAL_QUEUE, LocalQueue)]
    return sorted(found, key=lambda one: (one.kind, one.queue))


def _cluster_queue(queue: ClusterQueue) -> QueueLine:
    nominal = {
        (flavor.name, one.name): _canonical(str(one.nominal_quota), one.name)
        for group in queue.spec.resource_groups
        for flavor in group.flavors
        for one in flavor.resources
    }
    fair = queue.status.fair_sharing
    return QueueLine(
        kind="ClusterQueue",
        queue=queue.metadata.name,
        of=queue.spec.cohort_name,
        weighted_share=fair.weighted_share if fair is not None else None,
        usage=_usage(queue, nominal),
        **_counts(queue),
    )


def _local_queue(queue: LocalQueue) -> QueueLine:
    return QueueLine(
        kind="LocalQueue",
        queue=f"{queue.metadata.namespace}/{queue.metadata.name}",
        of=queue.spec.cluster_queue,
        weighted_share=None,
        usage=_usage(queue, {}),
        **_counts(queue),
    )


def _counts(queue: ClusterQueue | LocalQueue) -> dict[str, Any]:
    active = conditions.find(queue.status.conditions, "Active")
    return {
        "pending": queue.status.pending_workloads,
        "reserving": queue.status.reserving_workloads,
        "admitted": queue.status.admitted_workloads,
        "problem": active.message if active is not None and active.status != conditions.TRUE else "",
    }


def _usage(queue: ClusterQueue | LocalQueue, nominal: dict[tuple[str, str], str]) -> tuple[Usage, ...]:
    used = _totals(queue.status.flavors_usage)
    ghost = {(one["flavor"], one["resource"]): one["total"] for one in ghost_of(queue)}
    reserved = {
        (flavor.name, one.name): (str(one.total), str(one.borrowed))
        for flavor in queue.status.flavors_reservation
        for one in flavor.resources
    }
    return tuple(
        Usage(
            flavor=cell[0],
            resource=cell[1],
            reserved=reserved.get(cell, ("0", "0"))[0],
            used=used.get(cell, "0"),
            nominal=nominal.get(cell, ""),
            borrowed=reserved.get(cell, ("0", "0"))[1],
            load=_load(reserved.get(cell, ("0", "0"))[0], nominal.get(cell, ""), cell[1]),
            ghost=ghost.get(cell, ""),
        )
        for cell in dict.fromkeys((*nominal, *reserved, *ghost))
    )


def _totals(flavors: Iterable[FlavorUsage]) -> dict[tuple[str, str], str]:
    return {(flavor.name, one.name): str(one.total) for flavor in flavors for one in flavor.resources}


def _canonical(quantity: str, resource: str) -> str:
    """Return a quantity as statuses show it (6000m of cpu is 6), so that both can be compared by eye."""
    try:
        return amounts.to_text(amounts.parse(quantity, resource), resource)
    except amounts.QuantityError:
        return quantity


def _load(reserved: str, nominal: str, resource: str) -> float | None:
    try:
        most = amounts.parse(nominal, resource) if nominal else 0
        return amounts.parse(reserved, resource) / most if most > 0 else None
    except amounts.QuantityError:
        return None  # a quota that is no quantity is told by the queue's condition Active


_YIELDING = frozenset({"QUEUE", "OF", "FLAVOR", "LOAD"})
"""Columns that are cut where the terminal is narrow, the widest first; figures and headings are not."""
_HEAD = ("QUEUE", "OF", "PENDING", "RESERVING", "ADMITTED", "SHARE")


def frame(found: list[QueueLine]) -> Table:
    """Return one picture for a terminal: a block per queue, a bar per flavor and resource."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    numbers = {"PENDING", "RESERVING", "ADMITTED", "SHARE", "RESERVED"}
    empty = _empty(found)
    head_names = tuple(name for name in _HEAD if name not in empty)
    for name in (*head_names, "FLAVOR", "RESOURCE", "RESERVED", "LOAD"):
        table.add_column(name, no_wrap=name not in _YIELDING, justify="right" if name in numbers else "left")
    for line in found:
        title = _name(line.queue if line.kind == "ClusterQueue" else f"  {line.queue}")
        share = "" if line.weighted_share is None else str(line.weighted_share)
        cells: tuple[str | Text, ...] = (
            title,
            _name(line.of),
            str(line.pending),
            str(line.reserving),
            str(line.admitted),
            share,
        )
        head = tuple(cell for name, cell in zip(_HEAD, cells, strict=True) if name not in empty)
        for index, one in enumerate(line.usage or (None,)):
            start = head if index == 0 else ("",) * len(head)
            if one is None:
                table.add_row(*start, "", "", "", "")
            else:
                table.add_row(*start, _name(one.flavor), one.resource, _amount(one), bar(one.load))
        if line.problem:
            table.add_row(Text(f"  {line.problem}", style="red"))
    if not found:
        table.add_row(NOTHING)
    return table


def _empty(found: list[QueueLine]) -> set[str]:
    """Return the columns that no queue has anything for: their room is what others need on a narrow terminal."""
    empty = set() if any(line.of for line in found) else {"OF"}
    return empty if any(line.weighted_share is not None for line in found) else {*empty, "SHARE"}


def bar(load: float | None) -> Text:
    """Return a load as its percentage and a bar; nothing where there is no quota of its own."""
    if load is None:
        return Text("")
    cells = min(BAR_CELLS, round(load * BAR_CELLS))
    style = "red" if load >= FULL else "yellow" if load >= NEARLY else "green"
    rest = "░" * (BAR_CELLS - cells)
    return Text.assemble(f"{load * PERCENT:3.0f}% ", ("█" * cells, style), (rest, "dim"), no_wrap=True, overflow="crop")


def _name(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")


def _amount(one: Usage) -> str:
    amount = f"{one.reserved}/{one.nominal}" if one.nominal else one.reserved
    besides = [] if one.borrowed in {"", "0"} else [f"+{one.borrowed} borrowed"]
    besides += [f"{one.ghost} ghost"] if one.ghost else []
    return f"{amount} ({', '.join(besides)})" if besides else amount


NOTHING = "No queues. Apply a ResourceFlavor, a ClusterQueue and a LocalQueue first."


def _print(found: list[QueueLine]) -> None:
    rows = [
        (
            line.queue,
            line.of,
            line.pending,
            line.reserving,
            line.admitted,
            line.weighted_share,
            one.flavor if one else "",
            one.resource if one else "",
            _amount(one) if one else "",
            f"{one.load * PERCENT:.0f}%" if one and one.load is not None else "",
            line.problem,
        )
        for line in found
        for one in (line.usage or (None,))
    ]
    columns = ("Queue", "Of", "Pending", "Reserving", "Admitted", "Share", "Flavor", "Resource", "Reserved", "Load")
    show((*columns, "Problem"), rows, Output.TABLE, nothing=NOTHING)
