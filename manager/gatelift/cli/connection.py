"""The API server that a verb talks to, and how a failure becomes one line and an exit code.

Exit codes: 0 done · 1 failed · 2 wrong use or configuration · 3 not found · 4 API server not reached or not allowed ·
5 a wait ran out · 130 stopped by Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

import typer

from gatelift.cli.sentences import say
from gatelift.cli.target import ApiTarget
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import ClusterConfig, auto
from gatelift_kube.deciding.errors import (
    ApiError,
    ConfigError,
    ForbiddenError,
    KubeError,
    NotFoundError,
    SettingsFileError,
    UnauthorizedError,
    UnreachableError,
)
from gatelift_kube.process import event_loop

FAILED, USAGE, NOT_FOUND, UNREACHABLE, TIMED_OUT, STOPPED = 1, 2, 3, 4, 5, 130

T = TypeVar("T")

NO_KINDS = (
    "this API server does not serve Gatelift's kinds: is it the management cluster (--kubeconfig, --context), and are"
    " the CRDs there (kubectl apply --server-side -k deploy/crds)?"
)


class CliError(Exception):
    """A failure that a person can do something about: one line, and the exit code."""

    def __init__(self, text: str, code: int = FAILED) -> None:
        super().__init__(text)
        self.code = code


def run(target: ApiTarget, verb: Callable[[Client], Awaitable[T]]) -> T:
    """Run an async verb against the API server; errors become one line on standard error and an exit code."""
    return end_well(_connected(target, verb))


def end_well(work: Awaitable[T]) -> T:
    """Run `work`; what a person can mend is printed in one line, without a stack trace."""

    async def awaited() -> T:
        return await work

    try:
        return event_loop.run(awaited())
    except CliError as error:
        _fail(str(error), error.code)
    except (ConfigError, SettingsFileError) as error:
        _fail(str(error), USAGE)
    except UnreachableError as error:
        _fail(f"{error}; {_way_to(error)}", UNREACHABLE)
    except NotFoundError as error:
        _fail(NO_KINDS if is_of_no_kind(error) else str(error), NOT_FOUND)
    except UnauthorizedError as error:
        _fail(f"{error}: it does not know who you are; renew the user's credential in the kubeconfig", UNREACHABLE)
    except KubeError as error:
        if isinstance(error, ForbiddenError):
            _fail(f"{error}; ask for that right, or choose another user with --context", UNREACHABLE)
        _fail(str(error), FAILED if isinstance(error, ApiError) and error.status in {409, 422} else UNREACHABLE)
    except KeyboardInterrupt:
        _fail("stopped", STOPPED)
    raise AssertionError  # _fail does not return


def is_of_no_kind(error: NotFoundError) -> bool:
    """Say whether not the object is missing, but the API server does not serve its kind."""
    return error.reason != "NotFound" or "could not find the requested resource" in error.message


def _way_to(error: UnreachableError) -> str:
    if "certificate is not trusted" in str(error):
        return "put the cluster's CA into the kubeconfig (certificate-authority-data), or choose another with --context"
    return "is it up? --kubeconfig and --context choose another"


async def chosen_namespace(target: ApiTarget) -> str:
    """Return the namespace that kubectl would use: the context's, else `default`."""
    return (await _config(target)).namespace or "default"


async def _config(target: ApiTarget) -> ClusterConfig:
    return await auto(target.kubeconfig or os.environ.get("KUBECONFIG", ""), target.context)


async def _connected(target: ApiTarget, verb: Callable[[Client], Awaitable[T]]) -> T:
    config = await _config(target)
    async with Client.connect(config, user_agent="gatelift-cli") as client:
        return await verb(client)


def _fail(text: str, code: int) -> None:
    for line in filter(None, map(str.strip, text.splitlines())):  # a file may have several faults, each has its line
        say(f"gatelift: {line}", err=True)
    raise typer.Exit(code)
