"""What an object has in the entries of its status that our structs have no place for: set aside, and put back. Pure.

Merge patches replace lists whole. A field that only a newer API, or another controller, knows in one of these entries
would be lost by our next write; so it travels with the entry (`Entry.more`). `decoding` comes here for objects that
have such fields, which are few; `put_back` is for whoever writes entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gatelift_kube.objects.kueue import AdmissionCheckState, EvictionCount, PodSetUpdate
from gatelift_kube.objects.meta import Condition, Entry

_MORE = "$more"
_LISTS: tuple[tuple[tuple[str, ...], type[Entry]], ...] = (
    (("status", "conditions"), Condition),
    (("status", "admissionChecks"), AdmissionCheckState),
    (("status", "admissionChecks", "podSetUpdates"), PodSetUpdate),
    (("status", "schedulingStats", "evictions"), EvictionCount),
)
"""Where entries are, and which struct reads them; inner lists after the ones that they are in."""


def set_aside(document: Any) -> None:
    """Move the fields of all entries that have no place in their struct to where the struct finds them, in place.

    What is not of the expected shape is left as it is, for the decoder to complain about.
    """
    for path, struct in _LISTS:
        known = set(struct.__struct_encode_fields__)
        for entry in _at(document, path):
            unknown = {name: entry.pop(name) for name in list(entry) if name not in known}
            if unknown:
                entry[_MORE] = unknown


def put_back(entry: Entry, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return `document`, made of an entry's known fields, with the unknown ones beside them."""
    return {**(entry.more or {}), **document}


def _at(document: Any, path: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the objects at a path, through lists."""
    found = [document]
    for name in path:
        inner = [each.get(name) for each in found if isinstance(each, dict)]
        found = [one for each in inner for one in (each if isinstance(each, list) else [each])]
    return [each for each in found if isinstance(each, dict)]
