"""What an object asks for of what is not served (`not_served`): the answer to whoever writes it. Pure.

An update is answered for what is new in it: what was there before is changed, shown and deleted as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gatelift_kinds.shared.not_served import EACH, EVERY_KEY, TABLE, NotServedRow, Path, Treatment
from gatelift_kinds.shared.review import Verdict
from gatelift_kinds.shared.rules import Object, forbidden

_BY_KIND: dict[str, tuple[NotServedRow, ...]] = {
    kind: tuple(
        entry for entry in TABLE if kind in entry.kinds and not entry.by_rule and entry.answer != Treatment.LEFT
    )
    for kind in {kind for entry in TABLE for kind in entry.kinds}
}


def verdict(kind: str, old: Object, new: Object, *, served: frozenset[str] = frozenset()) -> Verdict:
    """Return what of a new object, or what that is new in a change, is refused or warned of; `old` empty when new.

    `served`: keys and values of the table that are served of this very object.
    """
    errors, warnings = [], []
    for entry in _BY_KIND.get(kind, ()):
        before = dict(_at(old, entry.path))
        for where, value in _at(new, entry.path):
            if (entry.values and value not in entry.values) or before.get(where) == value:
                continue
            if entry.path[-1] in served or (isinstance(value, str) and value in served):
                continue
            if entry.answer is Treatment.REFUSED:
                errors.append(forbidden(where, entry.text))
            else:
                warnings.append(f"{where}: {entry.text}")
    return Verdict(errors=tuple(errors), warnings=tuple(warnings))


def joined(*verdicts: Verdict) -> Verdict:
    """Return all that several verdicts say."""
    return Verdict(
        errors=tuple(error for one in verdicts for error in one.errors),
        warnings=tuple(text for one in verdicts for text in one.warnings),
    )


def shown(path: Path) -> str:
    """Return a path as people read it: keys of maps and items of lists in brackets."""
    text = ""
    for before, name in zip(("", *path), path, strict=False):
        text += f"[{name}]" if before in EVERY_KEY or name == EACH else f".{name}" if text else name
    return text


def _at(document: Any, path: Path) -> Iterator[tuple[str, Any]]:
    """Yield what stands at a path of any document, each with where it is; nothing where the path ends before."""
    found: list[tuple[Path, Any]] = [((), document)]
    for name in path:
        found = [((*where, key), value) for where, one in found for key, value in _below(one, name)]
    for where, value in found:
        yield _numbered(where, path), value


def _below(one: Any, name: str) -> Iterator[tuple[str, Any]]:
    if name == EACH:
        yield from ((str(index), value) for index, value in enumerate(one if isinstance(one, list) else ()))
    elif isinstance(one, dict) and one.get(name) is not None:
        yield name, one[name]


def _numbered(where: Path, path: Path) -> str:
    """Return where something was found: the path as people read it, with the number of each item."""
    text = shown(path)
    for index, name in zip(where, path, strict=True):
        if name == EACH:
            text = text.replace(f"[{EACH}]", f"[{index}]", 1)
    return text
