"""Which of two versions of an object is newer, and which one is its last. Pure.

Resource versions of one kind are comparable as whole numbers: promised since Kubernetes 1.35 (KEP-5504), true of etcd
ever since. Where one is no number another one counts as newer, as a watch delivers in order.
"""

from __future__ import annotations

from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.numbers import whole


def is_older(candidate: ObjectMeta, known: ObjectMeta) -> bool:
    """Say whether `candidate` is an older version of the same kind of object than `known`."""
    found, before = whole(candidate.resource_version), whole(known.resource_version)
    return found is not None and before is not None and found < before


def newer(candidate: ObjectMeta, known: ObjectMeta) -> bool:
    """Say whether `candidate` tells something that `known` does not: another object, or a later version of it.

    What we wrote comes twice, as the answer and by the watch; the second is no news.
    """
    if candidate.uid != known.uid:
        return True
    return candidate.resource_version != known.resource_version and not is_older(candidate, known)


def is_last(meta: ObjectMeta) -> bool:
    """Say whether an answer shows an object's last state: that write took the last finalizer of a deleted one.

    A watch that lists anew may never have known such an object, and then never says that it is gone.
    """
    return meta.deletion_timestamp is not None and not meta.finalizers and not meta.deletion_grace_period_seconds
