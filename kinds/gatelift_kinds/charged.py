"""What follows from a worker's object for its charge, so that an edit behind our back is recognised. Pure.

Values are small, since they are also written on the object: a long part stands as a digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gatelift_kinds import job_partial
from gatelift_kinds.shared.patches import Operation, decode, encode, guards
from gatelift_kinds.shared.pods import count_pods
from gatelift_kinds.shared.values import Charged
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.core import Pod

DIGEST_DIGITS = 16
"""Of SHA-256. It tells an edit from none; nobody gains by a second template with the same digest."""

_PUT_BACK = frozenset({"parallelism", "completions"})
"""Fields of a Job that the API server lets us put back while it runs; a template it does not."""


def of_pod(pod: Pod) -> Charged:
    """Return the requests of all its containers: `pods/resize` changes them in place."""
    spec = pod.spec
    asked = [[one.name, one.resources.requests] for one in (*spec.init_containers, *spec.containers)]
    whole = spec.resources.requests if spec.resources is not None else {}
    return {"resources": _digest([asked, whole])}


class _Image(msgspec.Struct):
    image: Any = None


class _Uncharged(msgspec.Struct, rename="camel"):
    init_containers: tuple[_Image, ...] = ()
    containers: tuple[_Image, ...] = ()
    active_deadline_seconds: int | None = None
    tolerations: tuple[Any, ...] | None = None
    ephemeral_containers: tuple[Any, ...] | None = None


class _Pod(msgspec.Struct):
    spec: _Uncharged = msgspec.field(default_factory=_Uncharged)


_UNCHARGED = msgspec.json.Decoder(_Pod)


def uncharged_of_pod(raw: bytes) -> Mapping[str, str]:
    """Return digests, by field, of what of a pod is changed in place, and charged for by nobody; what is empty has one.

    DecodeError where `raw` is no pod.
    """
    spec = _UNCHARGED.decode(raw).spec
    images = [[one.image for one in those] for those in (spec.init_containers, spec.containers)]
    return {
        "containers[*].image": _digest(images),
        "activeDeadlineSeconds": _digest(spec.active_deadline_seconds),
        "tolerations": _digest(spec.tolerations or ()),
        "ephemeralContainers": _digest(spec.ephemeral_containers or ()),
    }


def of_job(job: Job, raw: bytes) -> Charged:
    """Return how many pods it makes, and of which template."""
    return {
        "parallelism": 1 if job.spec.parallelism is None else job.spec.parallelism,
        "completions": job.spec.completions,
        "template": _digest(decode(raw)["spec"]["template"]),
    }


def put_job_back(job: Job, raw: bytes, wanted: Charged) -> bytes | None:
    """Return the JSON patch that makes the Job as it was, with tests of its state; None where that cannot be done."""
    now = of_job(job, raw)
    edited = {name for name in now if now[name] != wanted.get(name)}
    if not edited or not edited <= _PUT_BACK or not all(isinstance(wanted.get(name), int) for name in edited):
        return None
    changes: list[Operation] = [
        {"op": "add", "path": f"/spec/{name}", "value": wanted[name]} for name in sorted(edited)
    ]
    return encode([*guards(job.metadata), *changes])


def job_grows(job: Job, wanted: Charged) -> bool:
    """Return whether a number of pods is raised where a Job is put back; what cannot be compared counts as raised."""
    now = (
        ("parallelism", 1 if job.spec.parallelism is None else job.spec.parallelism),
        ("completions", job.spec.completions),
    )
    return any(_is_raised(has, wanted.get(name)) for name, has in now)


def job_has_settled(job: Job, wanted: Charged, pods: Sequence[Pod]) -> bool:
    """Return whether a Job that is put back runs no more than is wanted: fewer pods, or none of them stops any more.

    Its controller makes a new pod beside one that stops. Nothing in the status says which spec it has acted on, so that
    it has is seen by the pods it has: as many as the edit lets run.
    """
    edited = job_partial.pods_at_once(job_partial.now(job))
    if _pods_at_once(wanted) <= edited:
        return True
    known = count_pods("", pods)
    active = max(known.active, job.status.active)
    quiet = not (known.terminating or job.status.terminating)
    return quiet and active == (0 if job.spec.suspend else edited)


def _is_raised(has: int | None, wanted: str | int | None) -> bool:
    if has == wanted:
        return False
    return not (isinstance(has, int) and isinstance(wanted, int)) or wanted > has


def _pods_at_once(wanted: Charged) -> int:
    parallelism, completions = wanted.get("parallelism"), wanted.get("completions")
    at_once = parallelism if isinstance(parallelism, int) else 1
    return min(at_once, completions) if isinstance(completions, int) else at_once


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:DIGEST_DIGITS]
