"""What people read of a record that may not be the newest: why nothing is placed, and what ends that. Pure.

Neighbours: `recovery` (decides), `texts` (all other texts), the CLI's `recover` (shows them).
"""

from __future__ import annotations

from gatelift.core.texts import listing

SEAL_UNVERIFIED = "SealUnverified"
RESTORED = "Restored"
SETTLING = "Settling"
UNEXPLAINED = "Unexplained"
UNVOUCHED = "Unvouched"
LIST_PROVES_NOTHING = "ListProvesNothing"
DELETED_MEANWHILE = "DeletedMeanwhile"
PASSED_OVER = "PassedOver"


def waits(names: list[str], unvouched: list[str], unproven: list[str], gone: list[str]) -> str:
    """Return for whom a recovery waits: `names` have yet to say what runs, of `unvouched` only a person can.

    `unproven` have said it, and that there may be more; of `gone` the WorkerCluster is no more, or another one.
    """
    said = [f"waits for {listing(names)} to say what runs there, or to be declared fenced"] if names else []
    if unvouched:
        name = unvouched[0] if len(unvouched) == 1 else "NAME"
        asked = f"about what ran in {listing(unvouched)} before who serves it now"
        said.append(f"waits for a person's word {asked}: gatelift cluster fenced {name}")
    if gone:
        name = gone[0] if len(gone) == 1 else "NAME"
        ways = f"gatelift cluster add {name}, or gatelift cluster fenced {name}"
        said.append(f"waits for {listing(gone)}, whose WorkerCluster was deleted meanwhile: {ways}")
    if unproven:
        said.append(f"waits until the list of {listing(unproven)} proves what runs there: see gatelift recover")
    return f"the recovery of the management cluster {'; '.join(said) or 'goes on'}"


def said(text: str) -> str:
    """Return why all dispatch has stopped: a person says that the record is not the newest."""
    return (
        f"a person says that the management cluster was restored from a backup ({text}). Nothing new is placed, "
        "nothing that runs is stopped: see gatelift recover"
    )


def list_proves_nothing(cluster: str) -> str:
    """Return why a recovery waits for a cluster that has listed what it has, and what ends that."""
    return (
        f"{cluster} lists what it has, and its agent says that there may be more: not all its nodes were heard of "
        "since that started, or it cannot list a namespace with work. Bring the node back, or delete its Node when "
        f"nothing runs on it any more; let the agent list the namespace. Or, with {cluster} off: gatelift cluster "
        f"fenced {cluster}"
    )


def gone(cluster: str) -> str:
    """Return why a recovery waits for a cluster whose WorkerCluster was deleted, and what ends that."""
    return (
        f"the WorkerCluster {cluster} was deleted, or made anew, while the recovery waits: what it runs it goes on "
        f"running. Take it in again, with the cluster and agent that it had (gatelift cluster add {cluster}); or look "
        f"there, and when nothing of it runs: gatelift cluster fenced {cluster}"
    )


def unvouched(cluster: str) -> str:
    """Return why the list of a cluster does not answer a recovery, and who does."""
    return (
        f"who serves {cluster} is another cluster or agent than before, or has forgotten: its list does not tell what "
        "runs there of before, and the restored record may not know it. Look at the former one, and when nothing of it "
        f"runs: gatelift cluster fenced {cluster}"
    )


def fenced_before(cluster: str) -> str:
    """Return why a word that stands in a restored record does not answer its recovery, and what does."""
    return (
        f"{cluster} was declared fenced before the restore was found: it may have come back after that, and run what "
        "the restored record does not know. Bring it back; or look there again, and when nothing of that runs: "
        f"gatelift cluster fenced {cluster}"
    )


def not_raised(why: str) -> str:
    """Return why a Workload of a restored record is placed nowhere, and the way out."""
    return (
        "its epoch is to be raised after the restore of the management cluster, and the API server does not take that: "
        f"it is placed nowhere; mend what is refused, or delete it; it is tried again: {why}"
    )


def restored(cluster: str) -> str:
    """Return why all dispatch has stopped: a cluster has proven that the record is not the newest."""
    return (
        f"cluster {cluster} brings back a number that a manager gave and the record does not know: the management "
        "cluster was restored from a backup. Nothing new is placed, nothing that runs is stopped: see gatelift recover"
    )


def settling(names: list[str], since: str) -> str:
    """Return why a leader that found an old Lease, or that of one who waited itself, places nothing yet."""
    return (
        f"the Lease was not seen moving before it was taken at {since}, or its last holder still waited for clusters, "
        "so the record may be of long ago: nothing is "
        f"placed before {listing(names)} {'has' if len(names) == 1 else 'have'} said what runs there, or counts as "
        "lost, or has greeted and said nothing for too long"
    )


def passed_over(cluster: str, seconds: float) -> str:
    """Return why a leader waits no longer for a cluster that has not said what it has."""
    return (
        f"{cluster} has greeted, and has not said what runs there within {seconds:g} s: nobody waits for it any more. "
        "What the record has placed there stays charged and runs nowhere else. Look at its agent, or take it out: "
        f"gatelift cluster remove {cluster}"
    )


def recovery_raises(count: int) -> str:
    """Return what a recovery does when it has heard all clusters."""
    return f"the recovery of the management cluster raises the epochs of {count} workloads"


def seal_unverified(cluster: str) -> str:
    """Return why a cluster is cordoned whose agent brings back a number that is not sealed by us."""
    return (
        f"cluster {cluster} brings back a number of the leader's Lease whose seal is not ours, or is too old to tell: "
        "it gets no new work before its next greeting; look what runs there, then restart its agent"
    )


def unexplained(cluster: str) -> str:
    """Return what is left alone on a cluster."""
    return (
        f"cluster {cluster} runs what no Workload explains: it is left alone, since the record may be too old; see "
        "gatelift recover"
    )
