"""`gatelift manager`, `agent`, `webhooks`, `check-config`: the daemons, and a look at their configuration."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn
from urllib.parse import urlsplit

import typer
import yaml

from gatelift.cli.connection import FAILED, USAGE, CliError, end_well
from gatelift.cli.target import ApiTarget, target_of

ConfigOption = Annotated[Path | None, typer.Option("--config", help="Configuration file.")]
PlainOption = Annotated[bool, typer.Option("--plain", help="Short lines for people instead of JSON logs.")]


def manager(context: typer.Context, config: ConfigOption = None, plain: PlainOption = False) -> None:
    """Run the manager daemon in the management cluster."""
    end_well(_manager(target_of(context), config, plain))


def agent(context: typer.Context, config: ConfigOption = None, plain: PlainOption = False) -> None:
    """Run the agent of a worker cluster."""
    end_well(_agent(target_of(context), config, plain))


def webhooks(
    context: typer.Context,
    config: ConfigOption = None,
    plain: PlainOption = False,
    url: Annotated[str, typer.Option(help="Where the API server reaches us; the Service without it.")] = "",
) -> None:
    """Run the admission webhooks daemon."""
    end_well(_webhooks(target_of(context), config, plain, url))


def check_config(
    file: Annotated[Path, typer.Argument(help="Configuration file of the manager and the webhooks.")],
    of_agent: Annotated[bool, typer.Option("--agent", help="It is the file of an agent.")] = False,
) -> None:
    """Check a configuration file and print the effective values."""
    if of_agent:
        _check_agent(file)
        return
    from gatelift import config as configuration  # noqa: PLC0415  # pydantic is imported only by who needs it

    try:
        loaded = configuration.load(file)
    except configuration.ConfigError as error:
        text = str(error)
        if text.startswith("cluster: is no key"):
            text += "\nthis looks like the file of an agent: 'gatelift check-config --agent FILE' checks it"
        _refuse(text, error)
    typer.echo(yaml.safe_dump(loaded.model_dump(mode="json", by_alias=True), sort_keys=False), nl=False)
    for text in loaded.without_effect():
        typer.echo(f"gatelift: {text}: accepted, has no effect in this version", err=True)


def _check_agent(file: Path) -> None:
    from gatelift_agent import config as configuration  # noqa: PLC0415  # the agent's package, only for its file

    try:
        loaded = configuration.load(file)
    except configuration.ConfigError as error:
        _refuse(str(error), error)
    shown = loaded.model_dump(mode="json", by_alias=True)
    if shown.get("token"):
        shown["token"] = "(set)"  # noqa: S105  # what is printed instead of it
    typer.echo(yaml.safe_dump(shown, sort_keys=False), nl=False)


def _refuse(text: str, error: Exception) -> NoReturn:
    for line in text.splitlines():
        typer.echo(f"gatelift: {line}", err=True)
    raise typer.Exit(USAGE) from error


async def _manager(target: ApiTarget, path: Path | None, plain: bool) -> None:
    from gatelift import app, logs  # noqa: PLC0415  # the daemon's modules, only for the daemon
    from gatelift import config as configuration  # noqa: PLC0415
    from gatelift_kube.api.config import auto  # noqa: PLC0415

    logs.configure(human=plain)
    try:
        loaded = configuration.load(path)
    except configuration.ConfigError as error:
        raise CliError(str(error), USAGE) from error
    daemon = app.Manager(config=loaded, cluster=await auto(target.kubeconfig, target.context))
    _on_signals(daemon.stop.set)
    try:
        await daemon.run()
    except app.StartRefusedError as error:
        raise CliError(str(error), USAGE) from error
    except (RuntimeError, OSError) as error:
        raise CliError(str(error), FAILED) from error


async def _agent(target: ApiTarget, path: Path | None, plain: bool) -> None:
    from gatelift import logs  # noqa: PLC0415  # the daemon's modules, only for the daemon
    from gatelift_agent import app  # noqa: PLC0415
    from gatelift_agent import config as configuration  # noqa: PLC0415
    from gatelift_agent.adapters.enrolment import EnrolmentError  # noqa: PLC0415
    from gatelift_kube.api.config import auto  # noqa: PLC0415

    logs.configure(human=plain)
    try:
        loaded = configuration.load(path)
    except configuration.ConfigError as error:
        raise CliError(str(error), USAGE) from error
    daemon = app.Agent(config=loaded, cluster=await auto(target.kubeconfig, target.context))
    _on_signals(daemon.stop.set)
    try:
        await daemon.run()
    except EnrolmentError as error:
        raise CliError(str(error), USAGE) from error
    except (RuntimeError, OSError) as error:
        raise CliError(str(error), FAILED) from error


async def _webhooks(target: ApiTarget, path: Path | None, plain: bool, url: str) -> None:
    from gatelift import config as configuration  # noqa: PLC0415  # the daemon's modules, only for the daemon
    from gatelift import logs  # noqa: PLC0415
    from gatelift.webhooks import app  # noqa: PLC0415
    from gatelift.webhooks.tls import ClientCAError  # noqa: PLC0415
    from gatelift_kube.api.client import Client  # noqa: PLC0415
    from gatelift_kube.api.config import auto  # noqa: PLC0415
    from gatelift_kube.serving.status_server import ListenError  # noqa: PLC0415

    logs.configure(human=plain)
    try:
        loaded = configuration.load(path)
    except configuration.ConfigError as error:
        raise CliError(str(error), USAGE) from error
    host = urlsplit(url).hostname if url else None
    settings = app.settings_of(loaded, url=url, names=(host,) if host else ())
    stop = asyncio.Event()
    _on_signals(stop.set)
    async with Client.connect(await auto(target.kubeconfig, target.context), user_agent="gatelift-webhooks") as client:
        try:
            told = await app.serve(client, settings, stop)
        except ListenError as error:
            raise CliError(str(error)) from error
        except ClientCAError as error:
            raise CliError(str(error), USAGE) from error
        except OSError as error:
            raise CliError(
                f"webhook.port: {settings.host}:{settings.port} cannot be listened on ({error.strerror})"
            ) from error
    if not told:
        raise CliError("a part of the webhooks failed; the log says which")


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
