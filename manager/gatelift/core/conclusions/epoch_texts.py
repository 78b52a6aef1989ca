"""What people read where a cluster names a run, an epoch or labels that the record does not have. Pure.

Neighbours: `reports`, `belief` and `held` (decide).
"""

from __future__ import annotations

LABELS_NOT_BELIEVED = "LabelsNotBelieved"


def labels_not_believed(cluster: str, name: str, epoch: str) -> str:
    """Return what people are told of an object that carries our labels and was never placed."""
    return (
        f"cluster {cluster}: {name} carries Gatelift's labels of this workload (epoch {epoch}) and is not what was "
        "placed: it is left alone and counts as nothing; take the labels off it, or delete it"
    )


def runs_on(cluster: str, epoch: int) -> str:
    """Return why a workload waits that runs since before a recovery, under an epoch that the record did not know."""
    return (
        f"cluster {cluster} runs epoch {epoch} of this workload since before the management cluster was recovered: it "
        f"is not started anew before that has ended; gatelift recover --stop {cluster} ends it"
    )


def epoch_ahead(cluster: str, named: int, known: int, *, over: bool) -> str:
    """Return why a workload is held of which a cluster names a later epoch than its record knows."""
    what = "which has ended there, " if over else ""
    look = "how it has ended" if over else "what runs"
    end = "and it is started anew" if over else "and it is stopped there"
    return (
        f"cluster {cluster} names epoch {named} of this workload, {what}its record knows {known}: nothing new of it is "
        f"started, and {cluster} gets no new work; look {look} there, then raise the annotation gatelift.dev/epoch "
        f"to {named + 1} or above, {end}"
    )


def names_later(workload: str, named: int, count: int) -> str:
    """Return why a cluster gets no new work that names later epochs of this many workloads than their records know."""
    more = f" (and of {count - 1} more)" if count > 1 else ""
    return (
        f"It names epoch {named} of Workload {workload}{more}, which its record has not come to: it gets no new work "
        "until a person has looked what runs there; what to do stands on each Workload: condition QuotaReserved or "
        "gatelift.dev/Held, reason EpochAhead"
    )


def not_in_record(cluster: str, epoch: int, *, over: bool) -> str:
    """Return why a workload is held of which a cluster names the record's own epoch, which shows no placement."""
    what = "has ended there" if over else "is charged as what it asks for and goes on"
    return (
        f"cluster {cluster} names epoch {epoch} of this workload, and its status does not say that it was placed "
        f"there: it {what}, and nothing new of it is started; delete its object, or raise the annotation "
        f"gatelift.dev/epoch to {epoch + 1} or above, to have it stopped there and started anew"
    )


def stops_first(cluster: str, epoch: int) -> str:
    """Return why a workload waits of which an earlier run has come to light."""
    return f"cluster {cluster} still runs epoch {epoch} of this workload: it is stopped there before anything new of it"
