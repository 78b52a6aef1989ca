"""Parts of JSON that others wrote, where a part may be absent, or of another type. Pure."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def objects(parent: Json, name: str) -> list[Json]:
    """Return the JSON objects in the list `name`, an empty list where there is none."""
    items = parent.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def inner(parent: Json, name: str) -> Json:
    """Return the JSON object `name`, an empty one where there is none."""
    found = parent.get(name)
    return found if isinstance(found, dict) else {}
