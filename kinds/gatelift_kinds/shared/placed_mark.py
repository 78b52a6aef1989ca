"""Whose run a pod is, said where nobody can take it back: by a toleration of a taint that no node has. Pure.

Labels, annotations, finalizers and owners of a running pod are anybody's to edit who may patch it. The API server lets
tolerations be added and never taken off or changed. So the template of a placed Job carries one, and each of its pods
says for as long as it lives which placement it runs for. At `local` it says of which note of the template before it was
made with, too (`job.template_before`): that annotation is anybody's to write who may edit the Job. A pod that is an
object of its own says it of itself: at a worker as it is made, by its name, and at `local` as it is let go, by its UID.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from gatelift_kinds.shared.values import Placing
from gatelift_kube.objects.core import Toleration
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.numbers import whole
from gatelift_wire.values.keys import PlacementKey

DOMAIN = "placed-as.gatelift.dev"
VALUE_MAX = 63
"""What the API server takes as the value, and as the name in the key, of a toleration."""
PREFIX_MAX = 253
"""What it takes before the `/` of the key."""
DIGEST_LETTERS = 32
"""Of SHA-256 in hexadecimal: 128 bits, half of what a part of a name has room for."""
MARKS_MAX = 8
"""Marks of one pod that are read: ours is one, and whoever adds more must not make reading long."""
KEPT = 512
KEPT_CHARS_MAX = PREFIX_MAX + len("/") + 2 * VALUE_MAX
"""Tolerations whose reading is kept, and how long one is at most: 1 MB. Each version of a pod has the same ones, soon
after each other: what is kept of more pods than change at a time is only memory."""


class Mark(NamedTuple):
    """The placement that a pod was made for, by the Job of this name; `job_uid` "" where it was not known then.

    Of a pod that is an object of its own both are its own (`of_pod`).

    `noted` is the digest of what was noted with it, "" where nothing was.
    """

    origin: str
    key: PlacementKey
    job: str
    job_uid: str
    noted: str = ""


def digest(note: str) -> str:
    """Return the digest by which a mark names a note."""
    return hashlib.sha256(note.encode()).hexdigest()[:DIGEST_LETTERS]


def toleration(placing: Placing, job: str, job_uid: str = "", note: str = "") -> tuple[Toleration, ...]:
    """Return the mark of a Job's pods; none where it has no room for what it has to say.

    UIDs of an API server are 36 letters long, and names of Jobs at most 63: there it always has.
    """
    origin = f"{placing.origin}.{job_uid}" if job_uid else placing.origin
    origin += f".{digest(note)}" if job_uid and note else ""
    prefix, value = f"{origin}.{DOMAIN}", f"{placing.key.uid}.{placing.key.epoch}"
    if "." in placing.origin + job_uid or len(prefix) > PREFIX_MAX or max(len(value), len(job)) > VALUE_MAX:
        return ()
    return (Toleration(key=f"{prefix}/{job}", operator="Equal", value=value, effect="NoSchedule"),)


def of_pod(placing: Placing, name: str, uid: str = "", pod_set: str = "") -> tuple[Toleration, ...]:
    """Return the mark of a pod that is an object of its own; `uid` where it is there already.

    `pod_set`: as which one of several it is let go.
    """
    return toleration(placing, _pod(placing.namespace, name), uid, pod_set)


def without(tolerations: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tolerations of a template without marks: those of a template that was copied from another run."""
    return [each for each in tolerations if not _is_mark(str(each.get("key", "")))]


def read(tolerations: Iterable[Toleration]) -> tuple[Mark, ...]:
    """Return the marks among the tolerations of a pod. What does not read as one is none."""
    found: list[Mark] = []
    for each in tolerations:
        is_kept = len(each.key) + len(each.value) <= KEPT_CHARS_MAX
        mark = _kept(each.key, each.value) if is_kept else _read(each.key, each.value)
        if mark is not None:
            found.append(mark)
            if len(found) == MARKS_MAX:
                break
    return tuple(found)


def is_of_pod(mark: Mark, meta: ObjectMeta) -> bool:
    """Say whether a mark is that of this very pod (`of_pod`), not of a Job's pods, nor of one that it is a copy of."""
    return mark.job == _pod(meta.namespace, meta.name) and mark.job_uid in {"", meta.uid}


@lru_cache(maxsize=KEPT)
def _pod(namespace: str, name: str) -> str:
    """Return what stands for the name of a pod, which may be too long, and is no Job's: those have no `_`."""
    return f"pod_{digest(f'{namespace}/{name}')}"


def of_json(tolerations: Iterable[dict[str, Any]]) -> tuple[Toleration, ...]:
    """Return what `read` needs of tolerations as an object's JSON has them."""
    return tuple(Toleration(key=str(each.get("key", "")), value=str(each.get("value", ""))) for each in tolerations)


def _is_mark(key: str) -> bool:
    return key.partition("/")[0].endswith(f".{DOMAIN}")


def _read(key: str, value: str) -> Mark | None:
    if not _is_mark(key):
        return None
    prefix, _, job = key.partition("/")
    origin, _, rest = prefix.removesuffix(f".{DOMAIN}").partition(".")
    job_uid, _, noted = rest.partition(".")
    uid, _, epoch = value.rpartition(".")
    number = whole(epoch)
    return Mark(origin, PlacementKey(uid, number), job, job_uid, noted) if origin and job and uid and number else None


_kept = lru_cache(maxsize=KEPT)(_read)
