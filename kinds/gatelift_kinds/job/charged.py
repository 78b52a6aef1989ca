"""What follows from a worker's Job for its charge, so that an edit behind our back is recognised. Pure.

Values are small, since they are also written on the object: a long part stands as a digest.
"""

from __future__ import annotations

from collections.abc import Sequence

from gatelift_kinds.job import partial as job_partial
from gatelift_kinds.shared.digests import digest
from gatelift_kinds.shared.patches import Operation, decode, encode, guards
from gatelift_kinds.shared.pods import count_pods
from gatelift_kinds.shared.values import Charged
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.core import Pod

_PUT_BACK = frozenset({"parallelism", "completions"})
"""Fields of a Job that the API server lets us put back while it runs; a template it does not."""


def of_job(job: Job, raw: bytes) -> Charged:
    """Return how many pods it makes, and of which template."""
    return {
        "parallelism": 1 if job.spec.parallelism is None else job.spec.parallelism,
        "completions": job.spec.completions,
        "template": digest(decode(raw)["spec"]["template"]),
    }


def put_back(job: Job, raw: bytes, wanted: Charged) -> bytes | None:
    """Return the JSON patch that makes the Job as it was, with tests of its state; None where that cannot be done."""
    now = of_job(job, raw)
    edited = {name for name in now if now[name] != wanted.get(name)}
    if not edited or not edited <= _PUT_BACK or not all(isinstance(wanted.get(name), int) for name in edited):
        return None
    changes: list[Operation] = [
        {"op": "add", "path": f"/spec/{name}", "value": wanted[name]} for name in sorted(edited)
    ]
    return encode([*guards(job.metadata), *changes])


def grows(job: Job, wanted: Charged) -> bool:
    """Return whether a number of pods is raised where a Job is put back; what cannot be compared counts as raised."""
    now = (
        ("parallelism", 1 if job.spec.parallelism is None else job.spec.parallelism),
        ("completions", job.spec.completions),
    )
    return any(_is_raised(has, wanted.get(name)) for name, has in now)


def has_settled(job: Job, wanted: Charged, pods: Sequence[Pod]) -> bool:
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
