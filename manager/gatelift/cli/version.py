"""`gatelift version`."""

from __future__ import annotations

from importlib.metadata import version as installed_version

import typer


def version() -> None:
    """Print the version."""
    typer.echo(f"gatelift {installed_version('gatelift')}")
