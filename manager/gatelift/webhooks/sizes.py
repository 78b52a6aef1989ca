"""How large an object of a queue may get: what has no room left can be neither stopped nor deleted (HD-252). Pure.

etcd takes requests of 1.5 MiB. A stop writes a mark, a deletion its time, and kubelets and controllers what became of
it; where that does not fit any more the object runs on, charged, as long as whoever filled it likes. Annotations have
256 KiB in all, labels, finalizers and what owns it have no bound of their own. What is larger already may be changed
if that makes it no larger.
"""

from __future__ import annotations

import msgspec

from gatelift.webhooks.review import Json, Question
from gatelift_kinds.shared import markers, rules
from gatelift_kinds.shared.review import ErrorKind, FieldError, Verdict
from gatelift_wire.values.keys import LABEL_ORIGIN

OBJECT_BYTES_MAX = 512 * 1024
"""As JSON, managed fields included: a third of what etcd takes, as its Workload and the run at a worker have it too.

Nor do our policies cost the API server more than it spends on one of them (a million per expression, at most 22 for
each label or toleration): above that it refuses the write, also the manager's own.
"""
MARKERS = (markers.QUEUE_NAME, markers.MANAGED, markers.POD_GROUP_NAME)
"""Labels of what is in a queue, or waits at its gate."""


def verdict(question: Question) -> Verdict:
    """Return whether an object of a queue, or a pod of a run, has room left for what has to be written to it."""
    if not (_is_queued(question.new) or _is_queued(question.old)):
        return Verdict()
    before = _bytes(question.old) if question.old else 0
    now = _bytes(question.new)
    if now <= max(before, OBJECT_BYTES_MAX):
        return Verdict()
    text = (
        f"with {now} bytes it would be larger than the {OBJECT_BYTES_MAX} that an object of a queue may have: it could "
        "not be stopped any more, and perhaps not deleted; take labels, annotations or other texts out, or put them "
        "into a ConfigMap"
    )
    return Verdict(errors=(FieldError(kind=ErrorKind.FORBIDDEN, path=question.kind, text=text),))


def _is_queued(obj: Json) -> bool:
    return any(name in rules.marks(obj) for name in (*MARKERS, LABEL_ORIGIN))


def _bytes(obj: Json) -> int:
    return len(msgspec.json.encode(obj))
