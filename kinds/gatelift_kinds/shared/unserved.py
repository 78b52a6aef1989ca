"""Kinds on which a queue's name would promise what nobody keeps: refused, with the way out. Pure.

Kueue queues all of these by this label, or hands it on to their pods. Here pods and Jobs are queued where these say so
themselves; on what makes them the label holds nothing back and charges nothing (decision 41). Of kinds that are in no
table, here or in Kueue, nothing is known: the label on them is nothing to anybody.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gatelift_kinds.shared import markers, rules
from gatelift_kinds.shared.review import Verdict
from gatelift_kinds.shared.rules import Object, forbidden, label

EACH = "*"
"""In a path: each item of a list, each value of a map."""
ANY_VERSION = "*"
_PODS, _JOBS = "its pods", "its Jobs"
_TEMPLATE = ("template",)

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnservedKind:
    """A kind that makes what is queued.

    `parts`: what describes that; each one that is there has to be labelled. `templates`: where the label counts in a
    part, the one to be named first. Without parts nothing of the object says it.
    """

    kind: str
    group: str
    plural: str
    makes: str = _PODS
    parts: tuple[Path, ...] = (("spec",),)
    templates: tuple[Path, ...] = (_TEMPLATE,)
    version: str = "v1"


def _extension(
    kind: str, group: str, *parts: Path, makes: str = _PODS, templates: tuple[Path, ...] = ()
) -> UnservedKind:
    """Return a kind that a CRD defines, whatever versions it has; its plural is the usual one."""
    plural = f"{kind.lower()}s"
    templates = templates or (_TEMPLATE,)
    return UnservedKind(
        kind=kind, group=group, plural=plural, makes=makes, parts=parts, templates=templates, version=ANY_VERSION
    )


def _ray(kind: str, *above: str) -> UnservedKind:
    above = ("spec", *above)
    return _extension(kind, "ray.io", (*above, "headGroupSpec"), (*above, "workerGroupSpecs", EACH))


def _kubeflow(kind: str, replicas: str) -> UnservedKind:
    return _extension(kind, "kubeflow.org", ("spec", replicas, EACH))


_LEADER_WORKER = ("spec", "leaderWorkerTemplate")
BUILT_IN = (
    UnservedKind(kind="Deployment", group="apps", plural="deployments"),
    UnservedKind(kind="ReplicaSet", group="apps", plural="replicasets"),
    UnservedKind(kind="StatefulSet", group="apps", plural="statefulsets"),
    UnservedKind(kind="DaemonSet", group="apps", plural="daemonsets"),
    UnservedKind(kind="ReplicationController", group="", plural="replicationcontrollers"),
    UnservedKind(
        kind="CronJob",
        group="batch",
        plural="cronjobs",
        makes=_JOBS,
        templates=(("jobTemplate",), ("jobTemplate", "spec", "template")),
    ),
)
EXTENSIONS = (
    _extension(
        "JobSet",
        "jobset.x-k8s.io",
        ("spec", "replicatedJobs", EACH),
        makes=_JOBS,
        templates=(_TEMPLATE, ("template", "spec", "template")),
    ),
    _ray("RayCluster"),
    _ray("RayJob", "rayClusterSpec"),
    _ray("RayService", "rayClusterConfig"),
    _kubeflow("MPIJob", "mpiReplicaSpecs"),
    _kubeflow("PyTorchJob", "pytorchReplicaSpecs"),
    _kubeflow("TFJob", "tfReplicaSpecs"),
    _kubeflow("XGBoostJob", "xgbReplicaSpecs"),
    _kubeflow("PaddleJob", "paddleReplicaSpecs"),
    _kubeflow("JAXJob", "jaxReplicaSpecs"),
    _extension("TrainJob", "trainer.kubeflow.org"),
    _extension("AppWrapper", "workload.codeflare.dev"),
    _extension("SparkApplication", "sparkoperator.k8s.io"),
    _extension(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io",
        (*_LEADER_WORKER, "leaderTemplate"),
        (*_LEADER_WORKER, "workerTemplate"),
        templates=((),),
    ),
)
"""What Kueue queues and this version does not. Their CRDs need not be there: then nothing asks."""
MAKERS = (*BUILT_IN, *EXTENSIONS)
BY_KIND = {each.kind: each for each in MAKERS}
JUDGED = frozenset({*((each.kind, each.group) for each in MAKERS), ("Job", "batch")})
"""Kinds of owners, each with its group, of which a queue's name was judged as they were made themselves."""
CLUSTERS_OWN = (
    "system:serviceaccount:kube-system:",
    "system:serviceaccount:openshift-infra:",
    "system:kube-controller-manager",  # where its controllers have no accounts of their own
)
"""How the usernames of a cluster's own controllers begin."""
SERVICE_ACCOUNT = "system:serviceaccount:"


def verdict(
    kind: str, old: Object, new: Object, elsewhere: frozenset[tuple[str, str]] = frozenset(), username: str = ""
) -> Verdict:
    """Return what is wrong with an object of one of these kinds, or with a change of it; `old` is empty when it is new.

    What was labelled before there was anybody to refuse it may be changed in all else. `elsewhere`: kinds, each with
    its group, that another controller queues (`integrations.externalFrameworks`). `username`: who asks for it.
    """
    maker, queue = BY_KIND[kind], rules.marks(new).get(markers.QUEUE_NAME)
    if not queue or queue == rules.marks(old).get(markers.QUEUE_NAME):
        return Verdict()  # an empty name is no queue, as in Kueue
    owner = _owner(new)
    if (maker.kind, maker.group) in elsewhere or owner in elsewhere:
        return Verdict()
    if _is_queued(maker, new):
        return Verdict()  # what it makes is queued: the label says no more than what is so
    text = f"kind {kind} is not queued by this version, {maker.makes} are: {way_out(maker)}"
    if owner and _is_handed_on(owner, username):
        # The cluster's own controllers hand on what was judged at the owner, and read no warning.
        quiet = username.startswith(CLUSTERS_OWN) and owner in JUDGED
        return Verdict() if quiet else Verdict(warnings=(f"{label(markers.QUEUE_NAME)}: {text}",))
    return Verdict(errors=(forbidden(label(markers.QUEUE_NAME), text),))


def _is_handed_on(owner: tuple[str, str], username: str) -> bool:
    """Say whether the label is one that a controller hands on from an object that was seen: it would try for ever.

    Anybody may write an owner's reference, and an operator's own resource may make a Deployment, which Kueue queues.
    """
    return username.startswith(CLUSTERS_OWN) or (owner in JUDGED and username.startswith(SERVICE_ACCOUNT))


def way_out(maker: UnservedKind) -> str:
    """Return where the label counts instead, as one clause."""
    paths = [".".join((*part, *maker.templates[0])).replace(f".{EACH}", f"[{EACH}]") for part in maker.parts]
    if not paths:
        return f"leave the label out, and put it on the template from which {maker.makes} are made"
    labels = " and ".join(f"{path}.metadata.labels" for path in paths)
    return f"put the label on {labels}, where it queues {maker.makes} one by one, or leave it out"


def _owner(document: Object) -> tuple[str, str] | None:
    """Return kind and group of what controls an object."""
    for owner in (document.get("metadata") or {}).get("ownerReferences") or []:
        if owner.get("controller") is True:
            group, slash, _ = str(owner.get("apiVersion") or "").rpartition("/")
            return str(owner.get("kind") or ""), group if slash else ""
    return None


def _is_queued(maker: UnservedKind, document: Object) -> bool:
    """Say whether all that it makes names a queue itself."""
    found = [part for path in maker.parts for part in _parts(document, path)]
    return bool(found) and all(any(_names_queue(part, path) for path in maker.templates) for part in found)


def _names_queue(part: Any, path: Path) -> bool:
    return any(_names(one) for one in _parts(part, (*path, "metadata", "labels")))


def _names(labels: Any) -> bool:
    return isinstance(labels, dict) and isinstance(labels.get(markers.QUEUE_NAME), str) and labels[markers.QUEUE_NAME]


def _parts(document: Any, path: Path) -> Iterable[Any]:
    """Return what stands at a path, of any document: nothing where it ends before, or is of another type."""
    found = [document]
    for name in path:
        found = [below for one in found for below in _below(one, name)]
    return found


def _below(one: Any, name: str) -> Iterable[Any]:
    values: Iterable[Any]
    if name == EACH:
        values = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    else:
        values = (one.get(name),) if isinstance(one, dict) else ()
    return (value for value in values if value is not None)
