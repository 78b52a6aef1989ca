"""The command `gatelift`. Parses and calls; heavy modules are imported by the verb that needs them.

Exit codes: 0 done · 1 failed · 2 wrong use or configuration · 3 not found · 4 API server not reached or not allowed ·
5 a wait ran out · 130 stopped by Ctrl-C or SIGTERM.
"""

from __future__ import annotations

from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from gatelift.cli import authority, clusters, daemons, listing, sandbox
from gatelift.cli.connection import Target
from gatelift.cli.explain import explain
from gatelift.cli.top import top

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Gatelift: a multi-cluster dispatcher for Kueue workloads.",
)
app.add_typer(clusters.app, name="cluster")
app.add_typer(listing.app, name="get")
app.add_typer(authority.app, name="ca")
app.command()(explain)
app.command()(top)
app.command()(daemons.manager)
app.command()(daemons.agent)
app.command()(daemons.webhooks)
app.command("check-config")(daemons.check_config)
app.command()(sandbox.demo)
app.command()(sandbox.up)
app.command()(sandbox.down)


@app.callback()
def options(
    context: typer.Context,
    kubeconfig: Annotated[str, typer.Option(help="Path of a kubeconfig; as kubectl without it.")] = "",
    kube_context: Annotated[str, typer.Option("--context", help="Context of the kubeconfig.")] = "",
) -> None:
    """Choose the API server of the management cluster."""
    context.obj = Target(kubeconfig=kubeconfig, context=kube_context or None)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"gatelift {installed_version('gatelift')}")


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
