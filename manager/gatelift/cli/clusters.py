"""`gatelift cluster ...`: take worker clusters in, approve, cordon, fence, remove. Each is a write to an object."""

from __future__ import annotations

import datetime as dt
import enum
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, TypeVar

import msgspec
import typer

from gatelift import introduction
from gatelift.cli import approving, removing
from gatelift.cli.connection import NOT_FOUND, USAGE, CliError, is_of_no_kind, run
from gatelift.cli.fencing import Word, declare_fenced
from gatelift.cli.fencing_gone import declare_gone
from gatelift.cli.leader import tell_if_absent
from gatelift.cli.manifests import ACCEPTING
from gatelift.cli.render import Output, age, show
from gatelift.cli.sentences import say
from gatelift.cli.target import target_of
from gatelift.core.api import informing
from gatelift.core.clusters import foreign_runs
from gatelift.core.clusters.cluster_facts import NO_NEW_WORK
from gatelift.core.clusters.identity import ANNOTATION_RESTORED_ACCEPTED, awaits_person, doubted_in
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import NotFoundError
from gatelift_kube.objects import conditions
from gatelift_kube.objects.core import ConfigMap
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_kube.values.resources import CONFIG_MAP, WORKER_CLUSTER, ObjectKey, ObjectRef
from gatelift_wire.streams import identity
from gatelift_wire.values import tokens

NOBODY_KNOWS = "Unknown"
"""State of a cluster that was connected when the last manager led: sessions end with their manager."""
CA_CONFIG_MAP = "gatelift-ca"
"""Where the manager publishes the bundle that agents have to trust; certificates are no secret."""

HOST = (
    "For <host> write where agents reach the manager. Options --manager and --enrol fill it in, and so does\n"
    "gatelift.advertise in the manager's configuration.\n\n"
)

T = TypeVar("T")

app = typer.Typer(no_args_is_help=True, help="Worker clusters: list, add, approve, cordon, fenced, remove.")

Name = Annotated[str, typer.Argument(help="Name of the worker cluster.")]


@app.command("list")
def list_clusters(
    context: typer.Context, output: Annotated[Output, typer.Option("--output", "-o")] = Output.TABLE
) -> None:
    """List worker clusters with their sessions and what they have."""
    run(target_of(context), lambda client: print_clusters(client, output))


@app.command()
def add(
    context: typer.Context,
    name: Name,
    manager: Annotated[str, typer.Option(help="Address (host:port) of the manager's session port.")] = "",
    enrol: Annotated[str, typer.Option(help="Address (host:port) of the manager's enrolment port.")] = "",
    namespace: Annotated[str, typer.Option(help="Namespace of the manager.")] = "gatelift-system",
    token_only: Annotated[bool, typer.Option("--token-only", help="Print the token and nothing else.")] = False,
) -> None:
    """Expect a worker cluster: print a token for its agent, and how to install it."""
    token, told = run(target_of(context), lambda client: _add(client, name, namespace))
    if token_only:
        typer.echo(token)  # for programs, as it is
        return
    session, enrolment = manager or told.manager, enrol or told.enrol
    hours = told.token_seconds / 3600
    say(
        f"WorkerCluster {name} is expected. Its token works once, for {hours:g} hours:\n\n"
        f"  {token}\n\n"
        f"In the worker cluster, install the agent with it:\n\n"
        f"  kubectl apply -k deploy/overlays/worker\n"
        f"  kubectl -n gatelift-system create secret generic gatelift-agent-bootstrap \\\n"
        f"    --from-literal=GATELIFT_AGENT_CLUSTER={name} \\\n"
        f"    --from-literal=GATELIFT_AGENT_TOKEN={token} \\\n"
        f"    --from-literal=GATELIFT_AGENT_MANAGER={session or '<host>:7443'} \\\n"
        f"    --from-literal=GATELIFT_AGENT_ENROL={enrolment or '<host>:7444'}\n\n"
        f"{'' if session and enrolment else HOST}"
        f"For each namespace that accepts work there:\n\n"
        f"  kubectl label namespace NAMESPACE {' '.join(f'{key}={value}' for key, value in ACCEPTING.items())}\n"
        f"  kubectl -n NAMESPACE apply -k deploy/agent/namespace\n\n"
        f"When the agent has asked for its certificate ('gatelift cluster list' says so), approve the key that it\n"
        f"prints in its log here:\n\n"
        f"  gatelift cluster approve {name}"
    )


@app.command()
def approve(
    context: typer.Context,
    name: Name,
    key: Annotated[
        str,
        typer.Option("--key", metavar="PREFIX", help="The key's first 16 digits or more, as its agent prints them."),
    ] = "",
) -> None:
    """Approve the key of a worker cluster's agent: shows it, and asks whether it is the one that the agent prints."""
    digest = run(target_of(context), lambda client: _expected(name, approving.approve(client, name, key)))
    say(f"{name} approved (key {digest[:16]}...); its agent gets a certificate at its next request")


@app.command()
def cordon(
    context: typer.Context, name: Name, off: Annotated[bool, typer.Option("--off", help="Take new work again.")] = False
) -> None:
    """Send no new work to a worker cluster; what runs there goes on.

    With --off one that came back from a backup, or is another one under its name, gets work again, too: say it when
    somebody has looked what runs there. What is charged to it and it does not know stays charged ('fenced' ends that).
    """
    run(target_of(context), lambda client: _expected(name, _cordon(client, name, cordoned=not off)))
    say(f"{name} {'takes new work again' if off else 'gets no new work; what runs there goes on'}")


@app.command()
def fenced(context: typer.Context, name: Name) -> None:
    """Declare that nothing runs any more on a lost worker cluster; its work is dispatched anew.

    Make sure of it first (machines off, or its API reachable and empty): said too early, work runs twice. Waits until
    the manager has taken the word and nothing is placed there any more; said again, it goes on waiting.
    """

    def tell(text: str) -> None:
        say(text, err=True)

    word = run(target_of(context), lambda client: _expected(name, _fence(client, name, tell)))
    through = f" through session {word.session}" if word.session else ""
    say(f"{name} is fenced{through}, says {word.who}; its work is dispatched anew")


@app.command()
def foreign(
    context: typer.Context,
    name: Name,
    ignore: Annotated[bool, typer.Option("--ignore", help="Do not wait for them any more.")] = False,
    ignore_all: Annotated[
        bool, typer.Option("--ignore-all", help="Wait for nothing that this worker says of others, now or later.")
    ] = False,
    output: Annotated[Output, typer.Option("--output", "-o")] = Output.TABLE,
) -> None:
    """List what other management clusters left at a worker cluster and may run; what takes its place waits for it.

    Delete it there (its finalizer is nobody's any more, so take that off), or say --ignore when it may run beside.
    A worker that you do not believe: --ignore-all.
    """
    word = Ignore.ALL if ignore_all else Ignore.LISTED if ignore else Ignore.NOTHING
    run(target_of(context), lambda client: _expected(name, print_foreign(client, name, output, word)))


@app.command()
def remove(
    context: typer.Context,
    name: Name,
    now: Annotated[bool, typer.Option("--now", help="Also while work is placed on it: its key may be stolen.")] = False,
) -> None:
    """Revoke a worker cluster's certificate and close its session, once nothing is placed on it.

    With --now at once: its running work is not touched, and stays charged until you say 'fenced'.
    """
    left = run(target_of(context), lambda client: _expected(name, removing.remove(client, name, now=now)))
    say(f"{name} revoked; {left}")


async def print_clusters(client: Client, output: Output) -> None:
    """Print all worker clusters."""
    now = dt.datetime.now(dt.UTC)
    rows = []
    listed = [served.object async for page in client.list(WORKER_CLUSTER) for served in page.items]
    nobody_leads = await tell_if_absent(client)
    for found in listed:
        if not isinstance(found, WorkerCluster):
            continue
        status = found.status
        connected = conditions.find(status.conditions, "Connected")
        state = connected.reason if connected else "NeverConnected"
        if nobody_leads and connected is not None and connected.status == conditions.TRUE:
            state = NOBODY_KNOWS
        flags = ", ".join(
            word
            for word, on in (
                ("cordoned", found.spec.cordoned),
                _doubted("restored", found.status.restored_session, found),
                _doubted("replaced", found.status.replaced_session, found),
                _doubted("taken over", found.status.taken_over_session, found),
                (f"no new work ({_cordoned_for(found)})", bool(_cordoned_for(found))),
                ("second agent", conditions.is_true(status.conditions, "SecondAgent")),
                (f"foreign ({_foreign(found)})", _foreign(found) > 0),
                ("left out", conditions.is_true(status.conditions, informing.CONDITION)),
                ("draining", found.spec.drain),
                ("revoked", found.spec.revoked),
                (_waits(found), bool(_waits(found))),
            )
            if on
        )
        rows.append(
            (
                found.metadata.name,
                state,
                status.session or "",
                status.placements,
                status.agent_version,
                flags,
                age(status.certificate_issued_at, now),
                age(found.metadata.creation_timestamp, now),
            )
        )
    show(
        ("Name", "State", "Session", "Placements", "Agent", "Notes", "Certificate", "Age"),
        sorted(rows, key=lambda row: str(row[0])),
        output,
        nothing="No worker clusters. Take one in: gatelift cluster add NAME",
    )


class Ignore(enum.Enum):
    """What a person says of runs of other management clusters at a worker."""

    NOTHING = "nothing"
    LISTED = "the origins that are listed"
    ALL = "all that this worker says, now and later"


async def print_foreign(client: Client, name: str, output: Output, word: Ignore) -> None:
    """Print what other management clusters left at a worker; write a person's word about it."""
    found = (await client.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)))).object
    runs = found.status.foreign if isinstance(found, WorkerCluster) else ()
    if word is not Ignore.NOTHING and isinstance(found, WorkerCluster):
        origins = foreign_runs.ignored(found) | {one.origin for one in runs}
        if word is Ignore.ALL or foreign_runs.IGNORE_ALL in origins:
            origins = frozenset({foreign_runs.IGNORE_ALL})
        elif len(origins) > foreign_runs.IGNORED_MAX:
            most = foreign_runs.IGNORED_MAX
            raise CliError(
                f"--ignore: {name} has named {len(origins)} origins, at most {most} can be ignored one by one; "
                "look at what its agent says, or wait for nothing of it: --ignore-all"
            )
        metadata = {
            "resourceVersion": found.metadata.resource_version,
            "annotations": {foreign_runs.ANNOTATION_IGNORED: ",".join(sorted(origins))},
        }
        await _patch(client, name, {"metadata": metadata})
    show(
        ("Kind", "Namespace", "Name", "Objects", "Origin"),
        [(one.kind or "(more)", one.namespace, one.name, one.count, one.origin) for one in runs],
        output,
        nothing=f"Nothing of another management cluster is on {name}",
    )


def _foreign(found: WorkerCluster) -> int:
    """Return how many runs of other management clusters are waited for."""
    return sum(one.count for one in foreign_runs.awaited(found, found.status.foreign))


def _cordoned_for(found: WorkerCluster) -> str:
    """Return the reason for which the manager itself keeps new work from a cluster, "" where it does not."""
    said = conditions.find(found.status.conditions, NO_NEW_WORK)
    return said.reason if said is not None and said.status == conditions.TRUE else ""


def _doubted(word: str, session: int, found: WorkerCluster) -> tuple[str, bool]:
    """Return what is said of a doubt that stands, and whether one does: also where new work goes there all the same."""
    takes_work = not awaits_person(found, session)
    return f"{word} (takes new work)" if takes_work else word, session > found.status.settled_session


def _waits(found: WorkerCluster) -> str:
    request = approving.waiting(found)
    return f"waits for approval (key {request.key_digest[: approving.KEY_CHARS_MIN]})" if request is not None else ""


async def _add(client: Client, name: str, namespace: str) -> tuple[str, introduction.Introduction]:
    try:
        identity.check_cluster_name(name)
    except identity.IdentityError as error:
        raise CliError(str(error), USAGE) from error
    if name == LOCAL_CLUSTER:
        raise CliError("name: 'local' is the management cluster itself and needs no agent; choose another", USAGE)
    try:
        served = await client.get(ObjectRef(CONFIG_MAP, ObjectKey(namespace, CA_CONFIG_MAP)))
    except NotFoundError as error:
        text = f"no ConfigMap {namespace}/{CA_CONFIG_MAP}: start the manager, then add clusters"
        raise CliError(text, NOT_FOUND) from error
    published = msgspec.json.decode(served.raw, type=ConfigMap).data
    told, bundle = introduction.read(published), published.get("ca.crt", "").encode()
    token = tokens.compose(name, secrets.token_bytes(tokens.SECRET_BYTES), bundle)
    expires = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=told.token_seconds)
    spec = {
        "tokenDigest": tokens.digest(token),
        "tokenExpiresAt": expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "approvedRequest": "",
        "revoked": False,
    }
    try:
        await _refuse_before_revocation_is_done(client, name)
        await _patch(client, name, {"spec": spec})
    except NotFoundError:
        document = {
            "apiVersion": WORKER_CLUSTER.api_version,
            "kind": WORKER_CLUSTER.kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        await client.create(WORKER_CLUSTER, "", json.dumps(document).encode())
    return token, told


async def _refuse_before_revocation_is_done(client: Client, name: str) -> None:
    """Raise CliError while a revoked cluster's key is still recorded: adding it now would approve that key again."""
    found = (await client.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)))).object
    if isinstance(found, WorkerCluster) and found.spec.revoked and found.status.key_digest:
        raise CliError(f"{name}: its revocation is not carried out yet; start the manager, then try again")


async def _cordon(client: Client, name: str, *, cordoned: bool) -> None:
    served = await client.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)))
    found = served.object
    body: dict[str, object] = {"spec": {"cordoned": cordoned}}
    doubted = doubted_in(found.status) if isinstance(found, WorkerCluster) else 0
    if not cordoned and doubted:
        annotations = {ANNOTATION_RESTORED_ACCEPTED: str(doubted)}
        body["metadata"] = {"annotations": annotations}
    await _patch(client, name, body)


async def _fence(client: Client, name: str, tell: Callable[[str], None]) -> Word:
    return await declare_gone(client, name) or await declare_fenced(client, name, tell)


async def _expected(name: str, work: Awaitable[T]) -> T:
    """Return what `work` returns; that there is no such cluster is told with the way out."""
    try:
        return await work
    except NotFoundError as error:
        if is_of_no_kind(error):
            raise
        text = f"no WorkerCluster {name}: 'gatelift cluster list' shows those that are there"
        raise CliError(text, NOT_FOUND) from error


async def _patch(client: Client, name: str, body: Mapping[str, object]) -> None:
    await client.patch(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)), json.dumps(body).encode())
