"""`gatelift demo`, `up`, `down`: Gatelift on clusters of this machine, to look at and to try out.

The sandbox's modules are imported only when one of these verbs runs; the daemons and the other verbs do without.
"""

from __future__ import annotations

import asyncio
import enum
import shutil
import signal
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from gatelift.cli.connection import STOPPED, CliError, end_well
from gatelift.cli.manifests import deploy_folder
from gatelift.cli.progress import Progress
from gatelift_kube.deciding.errors import KubeError
from gatelift_kube.process.tasks import spawn

if TYPE_CHECKING:
    from gatelift_sandbox.ensemble import Ensemble

KUBECONFIGS = Path("kubeconfigs")


class ProviderName(enum.StrEnum):
    """What clusters are made of."""

    EMBEDDED = "embedded"
    LOCAL = "local"
    KIND = "kind"
    K3S = "k3s"


REAL_NODES = frozenset({ProviderName.KIND, ProviderName.K3S})
REAL_NODE_MILLICORES = 50
"""What a pod of the demo asks for on real nodes, three of which share this machine with their own system pods."""

ProviderOption = Annotated[
    ProviderName,
    typer.Option(
        envvar="PROVIDER",
        help="embedded: processes of Python, at once; local: real control planes as processes; kind, k3s: in Docker.",
    ),
]


def demo(
    provider: ProviderOption = ProviderName.EMBEDDED,
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything up afterwards, to try out.")] = False,
) -> None:
    """Show it: one management cluster, two workers, work that travels, an agent that is killed. Ends by itself."""
    end_well(_unless_ended(_demo(provider, keep)))


def up(
    provider: ProviderOption = ProviderName.EMBEDDED,
    workers: Annotated[int, typer.Option(min=1, max=5, help="How many worker clusters.")] = 2,
) -> None:
    """Raise a management cluster and workers with Gatelift on them, in the background. `gatelift down` ends them."""
    end_well(_unless_ended(_up(provider, workers)))


def down() -> None:
    """End what `gatelift up` or `gatelift demo --keep` left running."""
    end_well(_unless_ended(_down()))


async def _demo(provider: ProviderName, keep: bool) -> None:
    from gatelift.cli import demo as story  # noqa: PLC0415  # only this verb needs the sandbox

    console = Console(highlight=False)
    progress = Progress(console)
    small = REAL_NODE_MILLICORES if provider in REAL_NODES else None
    raised = await _raise(progress, provider, workers=2, detached=keep, pod_millicores=small)
    kept = False
    try:
        async with story.Stage.open(raised, console) as stage:
            await _told_shortly(stage.play(), raised)
        kept = keep
    finally:
        if kept:
            raised.save()
        else:
            with progress.step("ending everything"):
                await raised.close()
    if kept:
        _how_to_go_on(console, raised)


async def _up(provider: ProviderName, workers: int) -> None:
    console = Console(highlight=False)
    raised = await _raise(Progress(console), provider, workers=workers, detached=True)
    _how_to_go_on(console, raised)


async def _down() -> None:
    from gatelift_sandbox import ensemble  # noqa: PLC0415  # only this verb needs the sandbox
    from gatelift_sandbox.errors import SandboxError  # noqa: PLC0415
    from gatelift_sandbox.provider import default_home  # noqa: PLC0415

    console = Console(highlight=False)
    home = default_home()
    try:
        if not ensemble.is_up(home):
            console.print(f"nothing is up (looked in {home})", soft_wrap=True)
            return
        with Progress(console).step("ending everything") as say:
            ended = await ensemble.end(home, KUBECONFIGS, say)
    except SandboxError as error:
        raise CliError(str(error)) from error
    console.print(f"ended: {', '.join(ended) or 'the daemons'}", soft_wrap=True)


async def _raise(
    progress: Progress, provider: ProviderName, *, workers: int, detached: bool, pod_millicores: int | None = None
) -> Ensemble:
    """Raise everything; failures become one line."""
    from gatelift_sandbox import ensemble  # noqa: PLC0415  # only these verbs need the sandbox
    from gatelift_sandbox.errors import AlreadyThereError, SandboxError  # noqa: PLC0415

    title = f"1 management cluster and {workers} worker{'s' if workers > 1 else ''} of provider {provider.value}"
    with progress.step(f"raising {title}, with Gatelift on them") as say:
        plan = ensemble.EnsemblePlan(
            provider=provider.value,
            workers=workers,
            pod_millicores=pod_millicores or ensemble.POD_MILLICORES,
            detached=detached,
            say=say,
        )
        try:
            return await ensemble.up(plan)
        except AlreadyThereError as error:
            raise CliError(str(error)) from error
        except (SandboxError, KubeError) as error:
            raise CliError(f"{error}; everything was stopped, logs: {plan.folder}") from error


async def _told_shortly(work: Awaitable[None], raised: Ensemble) -> None:
    """Await `work`; a failure is one line that names the logs."""
    from gatelift.cli.demo import BrokenPromiseError  # noqa: PLC0415  # only this verb needs the sandbox
    from gatelift_sandbox.errors import SandboxError  # noqa: PLC0415

    try:
        await work
    except (BrokenPromiseError, SandboxError, KubeError) as error:
        raise CliError(f"{error}; everything is stopped, logs: {raised.plan.folder}") from error


def _how_to_go_on(console: Console, raised: Ensemble) -> None:
    gatelift, kubectl = _command("gatelift"), "kubectl"
    if shutil.which(kubectl) is None and raised.management.kubectl is not None:
        kubectl = str(raised.management.kubectl)
    samples = _shown(deploy_folder() / "samples")
    lines = [
        "",
        "It is up. To try it out:",
        "",
        f"  export KUBECONFIG={raised.management.kubeconfig}",
        f"  {kubectl} apply -f {samples}/pod.yaml -f {samples}/job.yaml -f {samples}/too-large.yaml",
        f"  {gatelift} get workloads",
        f"  {gatelift} explain sample-too-large",
        *(f"  {kubectl} --kubeconfig {_shown(worker.kubeconfig)} get pods" for worker in raised.workers),
        "",
        f"Logs are in {_shown(raised.plan.folder)}. To end it:",
        "",
        f"  {gatelift} down",
    ]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False)


def _command(name: str) -> str:
    """Return how a person calls one of our commands here: by its name, or by its path where PATH does not have it."""
    return name if shutil.which(name) else _shown(Path(sys.executable).with_name(name))


def _shown(path: Path) -> str:
    """Return a path as short as can be from the working directory."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


async def _unless_ended(work: Awaitable[None]) -> None:
    """Await `work`; SIGTERM ends it as Ctrl-C does, with all clean-up."""

    async def awaited() -> None:
        await work

    task = spawn("verb", awaited())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        raise CliError("stopped; nothing is left running", STOPPED) from None
