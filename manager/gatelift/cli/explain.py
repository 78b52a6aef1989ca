"""`gatelift explain WORKLOAD`: why it is where it is, from the objects themselves, with the caller's own rights."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

import typer
from rich.console import Console

from gatelift.cli.clusters import target_of
from gatelift.cli.connection import NOT_FOUND, CliError, run
from gatelift.cli.listing import every, state_of
from gatelift.cli.render import Output, age, dump
from gatelift.core import record
from gatelift_kube.client import Client
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.resources import WORKLOAD


def explain(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of a workload, or of the pod or Job it was made for.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n")] = "default",
    output: Annotated[Output, typer.Option("--output", "-o")] = Output.TABLE,
) -> None:
    """Say why a workload is not running, or where it is, and what happened to it."""
    workload = run(target_of(context), lambda client: _find(client, namespace, name))
    facts = _facts(workload)
    if output is not Output.TABLE:
        dump(facts, output)
        return
    console = Console(highlight=False)
    console.print(f"[bold]{facts['workload']}[/bold]: {facts['state']}")
    for key in ("because", "cluster", "epoch", "queue", "quota", "checks"):
        if facts.get(key):
            console.print(f"  {key:<8} {facts[key]}")
    console.print("  history")
    for line in facts["history"]:  # type: ignore[attr-defined]  # a list of lines
        console.print(f"    {line}")


async def _find(client: Client, namespace: str, name: str) -> Workload:
    owned: Workload | None = None
    async for workload in every(client, WORKLOAD, Workload, namespace):
        if workload.metadata.name == name:
            return workload  # type: ignore[no-any-return]  # `every` yields what it was asked for
        if any(owner.name == name for owner in workload.metadata.owner_references):
            owned = workload
    if owned is None:
        text = f"no workload {namespace}/{name}, and none made for an object of that name; see 'gatelift get workloads'"
        raise CliError(text, NOT_FOUND)
    return owned


def _facts(workload: Workload) -> dict[str, object]:
    state, why = state_of(workload)
    found = record.read(workload, travels=bool(workload.metadata.owner_references))
    now = dt.datetime.now(dt.UTC)
    admission = workload.status.admission
    quota = ""
    if admission is not None:
        parts = [
            f"{each.name}: "
            + ", ".join(f"{amount} {what}" for what, amount in each.resource_usage.items())
            + f" from {', '.join(sorted(set(each.flavors.values()))) or 'no flavor'}"
            for each in admission.pod_set_assignments
        ]
        quota = f"{admission.cluster_queue} ({'; '.join(parts)})"
    ordered = sorted(workload.status.conditions, key=lambda each: each.last_transition_time or "")
    return {
        "workload": f"{workload.metadata.namespace}/{workload.metadata.name}",
        "state": state,
        "because": why,
        "cluster": found.cluster,
        "epoch": found.epoch,
        "queue": workload.spec.queue_name,
        "quota": quota,
        "checks": "; ".join(f"{each.name} {each.state}: {each.message}" for each in workload.status.admission_checks),
        "history": [
            f"{age(each.last_transition_time, now):>5} ago  {each.type}={each.status} {each.reason}: {each.message}"
            for each in ordered
        ],
    }
