"""The verbs of `gatelift`, each in a module that is imported when somebody asks for it.

So a daemon loads nothing that it does not run, and a verb answers in a third of the time that importing all takes.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

VERBS = {
    "explain": "explain:explain",
    "top": "top:top",
    "manager": "daemons:manager",
    "agent": "daemons:agent",
    "webhooks": "daemons:webhooks",
    "check-config": "daemons:check_config",
    "demo": "sandbox:demo",
    "up": "sandbox:up",
    "down": "sandbox:down",
    "cluster": "clusters:app",
    "recover": "recover:recover",
    "get": "listing:app",
    "ca": "authority:app",
    "version": "version:version",
}
"""Where each is, in the order of the help: module of this package and name in it, a command or an app of commands."""
GLOBAL = frozenset({"--kubeconfig", "--context"})
"""Options of all verbs, each with a value: which API server (`main.options`)."""


class Verbs(TyperGroup):
    """Knows all verbs by name, and imports one when it is run, or all for the help."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # asked so by whoever prints the help
        """Return the names of all verbs."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a verb; for a name that is none, load all of them, so that the nearest can be named."""
        if cmd_name in VERBS:
            self.commands.setdefault(cmd_name, _verb(cmd_name))
        else:
            for name in VERBS:
                self.get_command(ctx, name)
        return self.commands.get(cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the options of all verbs from wherever they stand, as kubectl does."""
        return super().parse_args(ctx, _in_front(args))

    def invoke(self, ctx: Any) -> Any:
        """Run a verb; what is wrong with the value of an option is told without the library's word for it."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


def _in_front(arguments: list[str]) -> list[str]:
    """Return the arguments with the options of all verbs before the verb; what comes after `--` is left."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    ours: list[str] = []
    others: list[str] = []
    rest = iter(arguments[:end])
    for one in rest:
        if one in GLOBAL:
            ours += [one, *([value] if (value := next(rest, None)) is not None else [])]
        elif one.partition("=")[0] in GLOBAL:
            ours.append(one)
        else:
            others.append(one)
    return [*ours, *others, *arguments[end:]]


def _verb(name: str) -> Any:
    module, _, attribute = VERBS[name].partition(":")
    found = getattr(import_module(f"gatelift.cli.{module}"), attribute)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name)
    else:
        alone.command(name)(found)
    return get_group(alone).commands[name]
