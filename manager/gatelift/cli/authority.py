"""`gatelift ca ...`: look at the certificate authority of the agents, and rotate it step by step."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from typing import Annotated

import msgspec
import typer
from cryptography import x509

from gatelift.adapters import authority
from gatelift.adapters.authority_store import NAME
from gatelift.cli.connection import NOT_FOUND, CliError, run
from gatelift.cli.target import target_of
from gatelift_kube.client import Client
from gatelift_kube.errors import NotFoundError
from gatelift_kube.objects.core import Secret
from gatelift_kube.resources import SECRET, ObjectKey, ObjectRef

app = typer.Typer(no_args_is_help=True, help="Certificate authority of the agents: show, announce, switch, retire.")

Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the manager.")]
Change = Callable[[authority.AuthorityState], authority.AuthorityState]


@app.command()
def show(context: typer.Context, namespace: Namespace = "gatelift-system") -> None:
    """Show which CA signs, which comes next, which is still trusted."""
    state, _ = run(target_of(context), lambda client: _read(client, namespace))
    typer.echo(f"signs    {_describe(state.current.certificate)}")
    if state.following is not None:
        typer.echo(f"next     {_describe(state.following.certificate)}")
    if state.old_certificate is not None:
        typer.echo(f"trusted  {_describe(state.old_certificate)}")


@app.command()
def announce(context: typer.Context, namespace: Namespace = "gatelift-system") -> None:
    """Step 1: put a next CA into the bundle that agents get when they renew."""
    _change(context, namespace, lambda state: authority.announce(state, dt.datetime.now(dt.UTC)))
    typer.echo(
        "a next CA is announced; when every agent has renewed (CERTIFICATE of 'gatelift cluster list' is how long ago"
        " that was), run: gatelift ca switch"
    )


@app.command()
def switch(context: typer.Context, namespace: Namespace = "gatelift-system") -> None:
    """Step 2: sign with the next CA; the old one stays trusted."""
    _change(context, namespace, authority.switch)
    typer.echo("the next CA signs now; when every agent has renewed again, run: gatelift ca retire")


@app.command()
def retire(context: typer.Context, namespace: Namespace = "gatelift-system") -> None:
    """Step 3: trust the old CA no more."""
    _change(context, namespace, authority.retire)
    typer.echo("the old CA is retired; agents that did not renew have to enrol anew")


def _change(context: typer.Context, namespace: str, step: Change) -> None:
    async def changed(client: Client) -> None:
        state, version = await _read(client, namespace)
        try:
            data: dict[str, str | None] = dict(step(state).to_secret())
        except authority.AuthorityError as error:
            raise CliError(str(error)) from error
        data |= {name: None for name in state.to_secret() if name not in data}
        body = {"metadata": {"resourceVersion": version}, "data": data}
        await client.patch(ObjectRef(SECRET, ObjectKey(namespace, NAME)), json.dumps(body).encode())

    run(target_of(context), changed)


async def _read(client: Client, namespace: str) -> tuple[authority.AuthorityState, str]:
    try:
        served = await client.get(ObjectRef(SECRET, ObjectKey(namespace, NAME)))
    except NotFoundError as error:
        text = f"no Secret {namespace}/{NAME}: start the manager, which makes it, or name its --namespace"
        raise CliError(text, NOT_FOUND) from error
    secret = msgspec.json.decode(served.raw, type=Secret)
    try:
        return authority.AuthorityState.from_secret(secret.data), secret.metadata.resource_version
    except authority.AuthorityError as error:
        raise CliError(str(error)) from error


def _describe(certificate: bytes) -> str:
    parsed = x509.load_pem_x509_certificate(certificate)
    return f"{parsed.subject.rfc4514_string()}, valid until {parsed.not_valid_after_utc:%Y-%m-%d}"
