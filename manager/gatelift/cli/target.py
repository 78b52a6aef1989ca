"""Which API server a verb talks to, as the options before the verb say."""

from __future__ import annotations

from dataclasses import dataclass

import typer


@dataclass(frozen=True, slots=True)
class ApiTarget:
    """Which API server: as kubectl chooses it, unless said otherwise."""

    kubeconfig: str = ""
    context: str | None = None


def target_of(context: typer.Context) -> ApiTarget:
    """Return the API server that the global options chose."""
    return context.obj if isinstance(context.obj, ApiTarget) else ApiTarget()
