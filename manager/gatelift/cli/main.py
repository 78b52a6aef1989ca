"""The command `gatelift`. Parses and calls; the module of a verb is imported when it is run (`verbs`).

Exit codes: 0 done · 1 failed · 2 wrong use or configuration · 3 not found · 4 API server not reached or not allowed ·
5 a wait ran out · 130 stopped by Ctrl-C or SIGTERM.
"""

from __future__ import annotations

from typing import Annotated

import typer

from gatelift.cli.target import ApiTarget
from gatelift.cli.verbs import Verbs
from gatelift.cli.version import version

app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Gatelift: a multi-cluster dispatcher for Kueue workloads.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    kubeconfig: Annotated[str, typer.Option(help="Path of a kubeconfig; as kubectl without it.")] = "",
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and end.")
    ] = False,
    kube_context: Annotated[str, typer.Option("--context", help="Context of the kubeconfig.")] = "",
) -> None:
    """Choose the API server of the management cluster."""
    del show_version  # its callback has ended the command
    context.obj = ApiTarget(kubeconfig=kubeconfig, context=kube_context or None)


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
