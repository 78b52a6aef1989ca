"""How pods of a group ended that cannot show it, kept on their Workload over its epochs (HD-412). Pure.

As a rule a pod at home shows how it ended, and nothing is kept here. Where the API server takes no such status of it,
it would run once more in the next epoch. By digests of UIDs, since UIDs of 4,096 pods and the declaration of a driver
would be more than annotations hold. Neighbour: `elsewhere` counts by it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec

from gatelift_kinds.shared.digests import digest
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.unreadable import UNREADABLE

ANNOTATION = "gatelift.dev/unshown-ends"
"""On the Workload: which pods have ended at a worker and cannot show it."""
ENDS_MAX = 4096
"""As many as a group has pods; succeeded ones come first."""
CHARS_MAX = 20 * ENDS_MAX


class _Kept(msgspec.Struct, frozen=True):
    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


_DECODER = msgspec.json.Decoder(_Kept)


def said(workload: Workload) -> str:
    """Return what a Workload keeps, "" for nothing; so long that it is none of ours counts as that."""
    text = workload.metadata.annotations.get(ANNOTATION, "")
    return text if len(text) <= CHARS_MAX else ""


def read(text: str) -> dict[str, bool]:
    """Return by digest whether it succeeded; what cannot be read says nothing."""
    try:
        found = _DECODER.decode(text) if text else _Kept()
    except UNREADABLE:
        return {}
    return {**dict.fromkeys(found.failed[:ENDS_MAX], False), **dict.fromkeys(found.succeeded[:ENDS_MAX], True)}


def more(text: str, ends: Mapping[str, bool], there: Container[str]) -> str:
    """Return the text with these ends (by UID), without pods that are gone; `there`: digests of those that are not."""
    known = {each: succeeded for each, succeeded in read(text).items() if each in there}
    known |= {digest(uid): well or known.get(digest(uid), False) for uid, well in ends.items()}  # nothing undoes that
    succeeded = sorted(each for each, well in known.items() if well)[:ENDS_MAX]
    failed = sorted(each for each, well in known.items() if not well)[: ENDS_MAX - len(succeeded)]
    return msgspec.json.encode(_Kept(succeeded=tuple(succeeded), failed=tuple(failed))).decode()
