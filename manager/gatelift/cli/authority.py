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
from gatelift.adapters.authority_store import NAME, REFRESH_SECONDS
from gatelift.cli.connection import NOT_FOUND, CliError, run
from gatelift.cli.target import target_of
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import NotFoundError
from gatelift_kube.objects.core import Secret
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import SECRET, WORKER_CLUSTER, ObjectKey, ObjectRef
from gatelift_kube.values.timestamps import to_seconds, to_text

app = typer.Typer(no_args_is_help=True, help="Certificate authority of the agents: show, announce, switch, retire.")

STEP_AT = "gatelift.dev/rotation-step-at"
"""Annotation of the Secret: when the latest step of a rotation was taken. Who renewed later knows of that step."""
KNOWN_SECONDS = 2 * REFRESH_SECONDS + authority.CLOCK_SKEW.total_seconds()
"""From a step by the clock of who takes it, until every replica knows of it by its own: it reads as often as that, a
read takes a while, and that clock may be behind. Too early, who does not know of the step would count as renewed."""
NAMED_MAX = 3
"""Clusters that a refusal names; the others are counted."""

Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the manager.")]
Force = Annotated[bool, typer.Option("--force", help="Also with agents that have not renewed: they enrol anew.")]
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
def switch(context: typer.Context, namespace: Namespace = "gatelift-system", force: Force = False) -> None:
    """Step 2: sign with the next CA; the old one stays trusted. Refused until every agent has renewed."""
    _change(context, namespace, authority.switch, "" if force else "they would not trust the manager any more")
    typer.echo("the next CA signs now; when every agent has renewed again, run: gatelift ca retire")


@app.command()
def retire(context: typer.Context, namespace: Namespace = "gatelift-system", force: Force = False) -> None:
    """Step 3: trust the old CA no more. Refused until every agent has renewed."""
    _change(context, namespace, authority.retire, "" if force else "they would be turned away")
    typer.echo("the old CA is retired; agents that did not renew have to enrol anew")


def _change(context: typer.Context, namespace: str, step: Change, otherwise: str = "") -> None:
    """Take a step; where `otherwise` says what becomes of agents that have not renewed, only if there are none."""

    async def changed(client: Client) -> None:
        state, meta = await _read(client, namespace)
        try:
            data: dict[str, str | None] = dict(step(state).to_secret())
        except authority.AuthorityError as error:
            raise CliError(str(error)) from error
        if otherwise:
            await _refuse_while_some_have_not_renewed(client, meta.annotations.get(STEP_AT, ""), otherwise)
        data |= {name: None for name in state.to_secret() if name not in data}
        annotations = {STEP_AT: to_text(dt.datetime.now(dt.UTC).timestamp())}
        body = {"metadata": {"resourceVersion": meta.resource_version, "annotations": annotations}, "data": data}
        await client.patch(ObjectRef(SECRET, ObjectKey(namespace, NAME)), json.dumps(body).encode())

    run(target_of(context), changed)


async def _refuse_while_some_have_not_renewed(client: Client, step_at: str, otherwise: str) -> None:
    """Raise CliError while an agent's certificate is older than the moment from which all replicas knew of a step."""
    try:
        since = to_seconds(step_at) + KNOWN_SECONDS
    except ValueError:
        text = f"the Secret does not say when the last step was taken (annotation {STEP_AT}: {step_at!r})"
        raise CliError(f"{text}; if all agents have renewed since, say --force") from None
    late: list[str] = []
    async for page in client.list(WORKER_CLUSTER):
        for found in (served.object for served in page.items):
            if isinstance(found, WorkerCluster) and found.status.key_digest and not found.spec.revoked:
                issued_at = found.status.certificate_issued_at
                if issued_at is None or to_seconds(issued_at) < since:
                    late.append(found.metadata.name)
    if not late:
        return
    more = f" and {len(late) - NAMED_MAX} more" if len(late) > NAMED_MAX else ""
    raise CliError(
        f"not renewed since the last step ({step_at}): {', '.join(sorted(late)[:NAMED_MAX])}{more}; {otherwise}. Wait"
        " until they connect with a renewed certificate (CERTIFICATE of 'gatelift cluster list' is the age of the one"
        " in use), or say --force and enrol them anew"
    )


async def _read(client: Client, namespace: str) -> tuple[authority.AuthorityState, ObjectMeta]:
    try:
        served = await client.get(ObjectRef(SECRET, ObjectKey(namespace, NAME)))
    except NotFoundError as error:
        text = f"no Secret {namespace}/{NAME}: start the manager, which makes it, or name its --namespace"
        raise CliError(text, NOT_FOUND) from error
    secret = msgspec.json.decode(served.raw, type=Secret)
    try:
        return authority.AuthorityState.from_secret(secret.data), secret.metadata
    except authority.AuthorityError as error:
        raise CliError(str(error)) from error


def _describe(certificate: bytes) -> str:
    parsed = x509.load_pem_x509_certificate(certificate)
    return f"{parsed.subject.rfc4514_string()}, valid until {parsed.not_valid_after_utc:%Y-%m-%d}"
