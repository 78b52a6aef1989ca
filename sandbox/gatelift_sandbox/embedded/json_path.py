"""The part of JSONPath that printer columns use: fields, indices, `[*]`, `['key']`, and filters on equality. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\\])+)
      | \[\?\(\s*@\.(?P<path>[^=!<>\s]+)\s*==\s*(?P<quote>["'])(?P<value>.*?)(?P=quote)\s*\)\]
      | \[(?P<index>-?\d+)\]
      | \[(?P<all>\*)\]
      | \[(?P<q>["'])(?P<key>.*?)(?P=q)\]""",
    re.VERBOSE,
)

Step = tuple[str, Any]


@lru_cache(maxsize=1024)
def steps(path: str) -> tuple[Step, ...]:
    """Return the steps of a path; those that are not understood end it, and it finds nothing."""
    found: list[Step] = []
    place = 0
    while place < len(path):
        match = _STEP.match(path, place)
        if match is None:
            return (("nothing", None),)
        place = match.end()
        if match["field"] is not None:
            found.append(("field", match["field"].replace("\\.", ".")))
        elif match["path"] is not None:
            found.append(("filter", (match["path"], match["value"])))
        elif match["index"] is not None:
            found.append(("index", int(match["index"])))
        elif match["all"] is not None:
            found.append(("all", None))
        else:
            found.append(("field", match["key"]))
    return tuple(found)


def find(document: Any, path: str) -> list[Any]:
    """Return all values at a path."""
    found = [document]
    for step, argument in steps(path):
        found = [value for place in found for value in _walk(place, step, argument)]
    return found


def _walk(place: Any, step: str, argument: Any) -> list[Any]:
    match step:
        case "field" if isinstance(place, dict) and argument in place:
            return [place[argument]]
        case "index" if isinstance(place, list) and -len(place) <= argument < len(place):
            return [place[argument]]
        case "all":
            return list(place.values()) if isinstance(place, dict) else list(place) if isinstance(place, list) else []
        case "filter" if isinstance(place, list):
            path, wanted = argument
            return [item for item in place if [str(value) for value in find(item, f".{path}")] == [wanted]]
        case _:
            return []
