"""Transcripts: what goes into a machine (`>>`) and what must come out (`<<`), as text files that a person can read.

    # Why this scenario is there.
    == role: agent
    >> @0 start
    << open stream 1
    == end

`==` before the first event are settings for the machine, `>>` is an event, `<<` a command that must come out, in
order; a deeper indented line goes on with the line before it. A mismatch shows a diff; a file without `== end` is
unfinished and fails, and so does one without an event. The machine is whatever `machine(settings)` returns: a function
from an event's text to the texts of its commands. With GATELIFT_RECORD=1 the files are rewritten with what comes out,
and the tests fail so that nobody forgets to read the change: commit only what you understand.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

Machine = Callable[[str], list[str]]
END = "end"


class TranscriptError(AssertionError):
    """A transcript is malformed, unfinished, or tells another story than the machine."""


@dataclass(slots=True)
class Exchange:
    """One event and what must come out; `lead` are comments and blank lines before it."""

    event: str
    line: int
    lead: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Transcript:
    """A parsed file."""

    path: Path
    settings: dict[str, str] = field(default_factory=dict)
    head: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)


def read(path: Path) -> Transcript:
    """Parse a file. Raises `TranscriptError` with the line when it is malformed or unfinished."""
    transcript = Transcript(path)
    loose: list[str] = []
    finished = False
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        word, _, rest = line.partition(" ")
        if finished and line.strip():
            raise TranscriptError(f"{path.name}:{number}: comes after '== {END}'")
        if not line.strip() or word == "#":
            loose.append(line)
        elif line.startswith("   "):
            _continue(transcript, line, number)
        elif word == ">>":
            transcript.exchanges.append(Exchange(rest.strip(), number, lead=loose))
            loose = []
        elif word == "<<" and transcript.exchanges and not loose:
            transcript.exchanges[-1].expected.append(rest.strip())
        elif word == "==" and rest.strip() == END:
            transcript.tail, loose, finished = loose, [], True
        elif word == "==" and not transcript.exchanges:
            key, _, value = rest.partition(":")
            transcript.settings[key.strip()] = value.strip()
            transcript.head += [*loose, line]
            loose = []
        else:
            raise TranscriptError(f"{path.name}:{number}: {line!r} has no place here")
    if not finished or not transcript.exchanges:
        raise TranscriptError(f"{path.name}: unfinished: needs events and a last line '== {END}'")
    return transcript


def _continue(transcript: Transcript, line: str, number: int) -> None:
    if not transcript.exchanges:
        raise TranscriptError(f"{transcript.path.name}:{number}: continues nothing")
    last = transcript.exchanges[-1]
    if last.expected:
        last.expected[-1] += " " + line.strip()
    else:
        last.event += " " + line.strip()


def play(path: Path, machine: Callable[[dict[str, str]], Machine]) -> None:
    """Play a file against a new machine. Raises `TranscriptError` with a diff where the two stories part."""
    transcript = read(path)
    perform = machine(transcript.settings)
    told, happened = [], []
    for exchange in transcript.exchanges:
        came = perform(exchange.event)
        told += [f">> {exchange.event}", *(f"<< {line}" for line in exchange.expected)]
        happened += [f">> {exchange.event}", *(f"<< {line}" for line in came)]
        exchange.expected = came
    if told == happened:
        return
    if os.environ.get("GATELIFT_RECORD") == "1":
        path.write_text(_text(transcript))
        raise TranscriptError(f"{path.name}: rewritten with what came out; read the change, then run without recording")
    diff = difflib.unified_diff(told, happened, f"{path.name} (told)", f"{path.name} (happened)", lineterm="", n=4)
    raise TranscriptError("the transcript and the machine differ\n" + "\n".join(diff))


def _text(transcript: Transcript) -> str:
    lines = list(transcript.head)
    for exchange in transcript.exchanges:
        lines += [*exchange.lead, *_wrapped(">>", exchange.event)]
        for line in exchange.expected:
            lines += _wrapped("<<", line)
    return "\n".join([*lines, *transcript.tail, f"== {END}", ""])


def _wrapped(mark: str, text: str, width: int = 120) -> list[str]:
    """Break a long line at blanks; joined by one blank again it is the same text."""
    lines = [mark]
    for word in text.split(" "):
        if len(lines[-1]) + 1 + len(word) > width and lines[-1].strip() not in {"", mark}:
            lines.append("     " + word)
        else:
            lines[-1] += " " + word
    return lines
