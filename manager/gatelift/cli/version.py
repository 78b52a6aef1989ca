"""`gatelift version`."""

from __future__ import annotations

from importlib.metadata import version as installed_version

import typer


def version() -> None:
    """Print the version, and whether the admission engine is compiled, as it is in the image."""
    from gatelift_admission.engine import is_compiled  # noqa: PLC0415 - other verbs start without it

    engine = "compiled" if is_compiled() else "interpreted"
    typer.echo(f"gatelift {installed_version('gatelift')} (admission engine: {engine})")
