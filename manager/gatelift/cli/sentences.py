"""Sentences for people, as the verbs print them. For tables and documents see `render`, which takes longer to load."""

from __future__ import annotations

import typer

from gatelift_kube.values.plain_text import plain

CHARS_MAX = 40_000
"""Longer than any text of the API: a line is cut by the terminal, in a pipe it is whole."""


def say(text: str = "", *, err: bool = False) -> None:
    """Print sentences, each line of them plain: what others said stands in many. `err`: to standard error."""
    for line in text.split("\n"):
        typer.echo(plain(line, CHARS_MAX), err=err)
