"""`gatelift cluster approve`: a person compares the key that asks with the one that the agent prints.

Whoever had the token first asked with a key of his own, so a name alone says nothing.
"""

from __future__ import annotations

import json
import re
import sys

import typer

from gatelift.cli.connection import USAGE, CliError
from gatelift.cli.sentences import say
from gatelift_kube.api.client import Client
from gatelift_kube.objects.gatelift import EnrolmentRequest, WorkerCluster
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef

KEY_CHARS_MIN = 16
"""64 bits: nobody makes a key whose hash begins with given ones."""
_PREFIX = re.compile(rf"[0-9a-f]{{{KEY_CHARS_MIN},64}}")


def waiting(found: WorkerCluster) -> EnrolmentRequest | None:
    """Return the request that waits for a person, None where none does."""
    request = found.status.enrolment
    if request is None or request.token_digest != found.spec.token_digest:
        return None
    done = request.key_digest in {"", found.spec.approved_request, found.status.key_digest}
    return None if done else request


async def approve(client: Client, name: str, key: str) -> str:
    """Approve the key that asks, if it begins with `key`, or, where that is "", if a person at the terminal says so.

    Returns its digest. What is approved is the key that was shown, whatever asks meanwhile. Raises CliError when there
    is no request, when it is of another key, and when nobody can be asked.
    """
    prefix = key.strip().lower()
    if prefix and not _PREFIX.fullmatch(prefix):
        text = f"--key: must be the first {KEY_CHARS_MIN} digits (0-9, a-f) or more of the key that the agent prints"
        raise CliError(text, USAGE)
    served = await client.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)))
    request = _request_of(served.object, name)
    if not prefix:
        _ask(name, request)
    elif not request.key_digest.startswith(prefix):
        raise CliError(
            f"{name}: the key that asks is {request.key_digest}, not one that begins with {prefix}: another agent has "
            f"used the token first; 'gatelift cluster add {name}' makes a new one"
        )
    body = {
        "metadata": {"resourceVersion": served.object.metadata.resource_version},
        "spec": {"approvedRequest": request.key_digest},
    }
    await client.patch(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)), json.dumps(body).encode())
    return request.key_digest


def _request_of(found: object, name: str) -> EnrolmentRequest:
    if isinstance(found, WorkerCluster) and found.spec.revoked:
        text = f"{name}: is revoked; 'gatelift cluster add {name}' takes it in again, with a new token for its agent"
        raise CliError(text)
    request = found.status.enrolment if isinstance(found, WorkerCluster) else None
    token = found.spec.token_digest if isinstance(found, WorkerCluster) else ""
    if request is None or not request.key_digest or request.token_digest != token:
        raise CliError(f"{name}: its agent has not asked for a certificate yet; start the agent with its token first")
    return request


def _ask(name: str, request: EnrolmentRequest) -> None:
    say(f"The agent of {name} asks with the key\n\n  {request.key_digest}\n\nsince {request.requested_at}.")
    if not is_terminal():
        raise CliError(
            f"--key: is needed where nobody can be asked: the first {KEY_CHARS_MIN} digits or more of the key that the "
            "agent prints in its log",
            USAGE,
        )
    if not typer.confirm("Does the agent print this key in its log?"):
        raise CliError(
            f"{name}: not approved; where another key stands there, 'gatelift cluster add {name}' makes a new token"
        )


def is_terminal() -> bool:
    """Say whether a person is there to be asked."""
    return sys.stdin.isatty()
