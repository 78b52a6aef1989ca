"""What the API server is to ask us about: the two webhook configurations. Pure.

failurePolicy is Fail, so what is asked about has to be narrow: objects that carry a queue's name or another marker,
never in kube-system or our own namespace, never from our own service accounts. Besides, all new pods and Jobs of those
namespaces where something is taken over without a queue's name: where a LocalQueue `default` exists, or, with
`manageJobsWithoutQueueName`, where the selector matches. And Kueue's own kinds, of which the rules cannot be said in
their CRDs; and what makes pods and gets a queue's name, which would hold none of them. With us down, everything else is
created as ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from gatelift.webhooks import sizes
from gatelift_kinds.registry import SERVED
from gatelift_kinds.shared import markers, unserved
from gatelift_kinds.shared.hooks import CorrectedChange, Hook
from gatelift_kube.objects.meta import LabelSelector
from gatelift_kube.objects.selectors import NAMESPACE_LABEL
from gatelift_kube.values.resources import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    RESOURCE_FLAVOR,
    WORKER_CLUSTER,
    WORKLOAD,
    Resource,
)
from gatelift_wire.values.keys import LABEL_ORIGIN

NAME = "gatelift"
MUTATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    namespaced=False,
)
VALIDATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)
ANSWER_SECONDS_MAX = 5
"""How long the API server waits for us: reviews take a millisecond, or one read of a pod's owner."""
SERVICE = "gatelift-webhooks"
SECRET_NAME = "gatelift-webhooks"  # noqa: S105 - the name of a Secret
SERVICE_PORT = 443
CONVERTED = ("clusterqueues", "localqueues", "multikueueclusters", "workloads")
"""Kinds of Kueue of which a field was renamed between v1beta1 and v1beta2."""
CONVERT_PATH = "/convert"
DEFINITION = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
_ASKING: dict[str, Any] = {
    "admissionReviewVersions": ["v1"],
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "objectSelector": {},
    "sideEffects": "None",
    "timeoutSeconds": ANSWER_SECONDS_MAX,
}

Json = dict[str, Any]

_NOTES = (markers.POD_GROUP_NAME, markers.POD_GROUP_TOTAL_COUNT, markers.POD_SUSPENDING_PARENT)


_NO_HOOK = Hook(shape=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedKind:
    """One kind as the API server is asked to show it to us."""

    name: str
    group: str
    plural: str
    version: str = "v1"
    hook: Hook = _NO_HOOK
    """How it is reviewed, where it is one of ours."""


HOOKED: dict[str, Resource] = {each.kind.lower(): each for each in SERVED.hooked}
"""Resources that are taken over and judged, by the names in our paths."""


KINDS = tuple(
    HookedKind(name=name, group=each.group, plural=each.plural, version=each.version, hook=SERVED.hook(each))
    for name, each in HOOKED.items()
)
UNSERVED = "unserved"
"""In our paths: what makes pods and is not queued itself (`gatelift_kinds.shared.unserved`)."""
OWNED = "owned"
"""In our paths: what others queue and something owns (`owned`)."""
GROWN = "grown"
"""In our paths: what gets larger (`sizes`)."""
LABELS_USUAL = 64
FINALIZERS_USUAL = 16
OWNERS_USUAL = 8
OWNER_CHARS_USUAL = 512
_SIDES = ("object", "oldObject")
QUEUEING = {
    "clusterqueue": CLUSTER_QUEUE,
    "cohort": COHORT,
    "resourceflavor": RESOURCE_FLAVOR,
    "workload": WORKLOAD,
}
"""Kinds of Kueue that are validated, by the names in our paths. Rules on the others are all in their CRDs."""
WARNED = {
    "localqueue": LOCAL_QUEUE,
    "admissioncheck": ADMISSION_CHECK,
    "multikueueconfig": MULTIKUEUE_CONFIG,
    "multikueuecluster": MULTIKUEUE_CLUSTER,
    "workercluster": WORKER_CLUSTER,
}
"""Kinds that are only warned of, for what they ask for and is not served: with us down, they are written unasked."""
SHOWN = {**QUEUEING, **WARNED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """On what the configurations depend.

    `url` is where we listen when we are no Service (a process on a host), "" otherwise. `unmarked_namespaces` are those
    in which objects without a queue's name are taken over; `unmarked_selector` selects further ones by label.
    """

    namespace: str
    ca_bundle: bytes = b""
    url: str = ""
    unmarked_namespaces: tuple[str, ...] = ()
    unmarked_selector: LabelSelector | None = None
    external: tuple[Resource, ...] = ()
    """What a controller of others queues."""
    makers: tuple[str, ...] = ()
    """Who is known to make their pods."""


def mutating(wanted: Wanted) -> list[Json]:
    """Return the webhooks of the mutating configuration, every field said that the API server would fill in."""
    extra = {"reinvocationPolicy": "Never"}
    changes = ((kind, change) for kind in KINDS for change in kind.hook.put_right)
    put_right = [_put_right(wanted, kind, change, extra) for kind, change in changes]
    return [*_webhooks(wanted, "mutate", ("CREATE",), extra), *put_right]


def validating(wanted: Wanted) -> list[Json]:
    """Return the webhooks of the validating configuration."""
    kueue = [_queueing(wanted, name, resource) for name, resource in SHOWN.items()]
    reviewed = _webhooks(wanted, "validate", ("CREATE", "UPDATE"), {})
    return [*reviewed, *kueue, *_unserved(wanted), *_owned(wanted), *_grown(wanted)]


def path(verb: str, kind: str) -> str:
    """Return the path under which a kind is mutated or validated."""
    return f"/{verb}-{kind}"


def conversion(wanted: Wanted) -> Json:
    """Return the part of a converted CRD that says how the API server reaches us."""
    webhook = {"clientConfig": _client(wanted, CONVERT_PATH), "conversionReviewVersions": ["v1"]}
    return {"strategy": "Webhook", "webhook": webhook}


def _queueing(wanted: Wanted, name: str, resource: Resource) -> Json:
    """Return the webhook of a kind of Kueue's, or of ours. Other versions are converted by the API server first."""
    parts = ["spec", "status"] if resource == WORKLOAD else ["spec"]
    plurals = [resource.plural, f"{resource.plural}/status"] if "status" in parts else [resource.plural]
    changed = " || ".join(
        f"has(object.{part}) != has(oldObject.{part}) || (has(object.{part}) && object.{part} != oldObject.{part})"
        for part in (*parts, *(("metadata.annotations",) if resource == CLUSTER_QUEUE else ()))
    )
    return {
        "clientConfig": _client(wanted, path("validate", name)),
        "rules": [
            {
                "apiGroups": [resource.group],
                "apiVersions": [resource.version],
                "operations": ["CREATE", "UPDATE"],
                "resources": plurals,
                "scope": "Namespaced" if resource.namespaced else "Cluster",
            }
        ],
        **_ASKING,
        **({"failurePolicy": "Ignore"} if name in WARNED else {}),
        "name": f"validate.{name}.gatelift.dev",
        "namespaceSelector": {"matchExpressions": [_outside(wanted.namespace)]},
        "matchConditions": [
            _not_ours(wanted.namespace),
            {"name": "changed", "expression": f"request.operation == 'CREATE' || {changed}"},
        ],
    }


def _unserved(wanted: Wanted) -> list[Json]:
    """Return the webhook of what makes pods: objects with a queue's name that is new are shown to us, and no others."""
    key = markers.QUEUE_NAME
    labelled, before = (f"(has({one}.metadata.labels) && '{key}' in {one}.metadata.labels)" for one in _SIDES)
    same = f"({before} && object.metadata.labels['{key}'] == oldObject.metadata.labels['{key}'])"
    rules = [
        _rule(
            HookedKind(name=each.kind, group=each.group, plural=each.plural, version=each.version), ("CREATE", "UPDATE")
        )
        for each in unserved.MAKERS
    ]
    return [
        {
            "clientConfig": _client(wanted, path("validate", UNSERVED)),
            "rules": rules,
            **_ASKING,
            "objectSelector": {"matchExpressions": [{"key": key, "operator": "Exists"}]},
            "name": f"validate.{UNSERVED}.gatelift.dev",
            "namespaceSelector": {"matchExpressions": [_outside(wanted.namespace)]},
            "matchConditions": [
                _not_ours(wanted.namespace),
                {"name": "changed", "expression": f"{labelled} && (request.operation == 'CREATE' || !{same})"},
            ],
        }
    ]


def _owned(wanted: Wanted) -> list[Json]:
    """Return the webhook of what others queue: who is not known to make it is asked about when it gets an owner."""
    if not wanted.external:
        return []
    vouched = [f"request.userInfo.username == '{name}'" for name in wanted.makers]
    vouched += [f"request.userInfo.username.startsWith('{name}')" for name in unserved.CLUSTERS_OWN]
    owners = "metadata.ownerReferences"
    owned = f"has(object.{owners}) && object.{owners}.exists(o, has(o.controller) && o.controller)"
    same = f"oldObject != null && has(oldObject.{owners}) && oldObject.{owners} == object.{owners}"
    kinds = [
        HookedKind(name=each.kind, group=each.group, plural=each.plural, version=unserved.ANY_VERSION)
        for each in wanted.external
    ]
    return [
        {
            "clientConfig": _client(wanted, path("validate", OWNED)),
            "rules": [_rule(each, ("CREATE", "UPDATE")) for each in kinds],
            **_ASKING,
            "name": f"validate.{OWNED}.gatelift.dev",
            "namespaceSelector": {"matchExpressions": [_outside(wanted.namespace)]},
            "matchConditions": [
                _not_ours(wanted.namespace),
                {"name": "not-vouched-for", "expression": f"!({' || '.join(vouched)})"},
                {"name": "owned", "expression": f"{owned} && !({same})"},
            ],
        }
    ]


def _grown(wanted: Wanted) -> list[Json]:
    """Return the webhooks of what gets larger, of a queue or of a run, in which the rules on it see no change."""
    sides = (f"(has({one}.metadata.labels) && '{LABEL_ORIGIN}' in {one}.metadata.labels)" for one in _SIDES)
    return [
        {
            "clientConfig": _client(wanted, path(GROWN, kind.name)),
            "rules": [_rule(kind, ("UPDATE",))],
            **_ASKING,
            "name": f"{GROWN}.{kind.name}.gatelift.dev",
            "namespaceSelector": {"matchExpressions": [_outside(wanted.namespace)]},
            "matchConditions": [
                _not_ours(wanted.namespace),
                {"name": "grown", "expression": " || ".join(_growths(kind))},
                {"name": "ours", "expression": " || ".join([*sides, f"({_marked()})"])},
            ],
        }
        for kind in KINDS
    ]


def _growths(kind: HookedKind) -> Iterable[str]:
    """Return how an object grows by the hand of whoever may edit it; a kubelet's and a controller's word is none.

    Controllers take finalizers and owners off, and put on a few: with us down that goes on. More than a few, of labels
    as well, or a name that is none, is nobody's usual business.
    """
    places = [
        ("metadata.labels", LABELS_USUAL),
        ("metadata.finalizers", FINALIZERS_USUAL),
        ("metadata.ownerReferences", OWNERS_USUAL),
    ]
    places += kind.hook.grows
    for place, usual in places:
        now, before = (f"{one}.{place}" for one in _SIDES)
        more = f"(!has({before}) || size({now}) > size({before}))"
        yield f"(has({now}) && size({now}) > {usual} && {more})"
    owners = "object.metadata.ownerReferences"
    long = " || ".join(f"size(o.{text}) > {OWNER_CHARS_USUAL}" for text in ("apiVersion", "kind", "name", "uid"))
    yield f"(has({owners}) && {owners}.exists(o, {long}))"
    yield from kind.hook.grows_besides


def _webhooks(wanted: Wanted, verb: str, operations: tuple[str, ...], extra: Json) -> list[Json]:
    made: list[Json] = []
    for kind in KINDS:
        rule = _rule(kind, operations)
        base: Json = {
            "clientConfig": _client(wanted, path(verb, kind.name)),
            "rules": [rule],
            **_ASKING,
            **extra,
        }
        if verb == "mutate" and wanted.external:
            base["sideEffects"] = "NoneOnDryRun"  # an event at a pod's owner (`ancestors`)
        by_users = [f"{kind.plural}/{one}" for one in kind.hook.subresources if "UPDATE" in operations]
        common = [_not_ours(wanted.namespace), *([_changed(kind)] if "UPDATE" in operations else [])]
        made.append(
            {
                **base,
                "rules": [{**rule, "resources": [*rule["resources"], *by_users]}],
                "name": f"{verb}.{kind.name}.gatelift.dev",
                "namespaceSelector": {"matchExpressions": [_outside(wanted.namespace)]},
                "matchConditions": [*common, {"name": "marked", "expression": _marked()}],
            }
        )
        unmarked = {"name": "unmarked", "expression": f"request.operation == 'CREATE' && !({_marked()})"}
        for suffix, selector in _unmarked_selectors(wanted):
            made.append(
                {
                    **base,
                    "name": f"{verb}-{suffix}.{kind.name}.gatelift.dev",
                    "namespaceSelector": selector,
                    "matchConditions": [*common, unmarked],
                }
            )
    return made


def _put_right(wanted: Wanted, kind: HookedKind, change: CorrectedChange, extra: Json) -> Json:
    """Return the webhook of a change that is put right instead of refused."""
    return {
        "clientConfig": _client(wanted, path("mutate", kind.name)),
        "rules": [_rule(kind, ("UPDATE",))],
        **_ASKING,
        **extra,
        "name": f"{change.name}.{kind.name}.gatelift.dev",
        "namespaceSelector": {"matchExpressions": [_outside(wanted.namespace)]},
        "matchConditions": [
            _not_ours(wanted.namespace),
            {"name": change.title, "expression": change.expression},
            {"name": "marked", "expression": _marked()},
        ],
    }


def _rule(kind: HookedKind, operations: tuple[str, ...]) -> Json:
    return {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": list(operations),
        "resources": [kind.plural],
        "scope": "Namespaced",
    }


def _unmarked_selectors(wanted: Wanted) -> Iterable[tuple[str, Json]]:
    outside = _outside(wanted.namespace)
    if wanted.unmarked_namespaces:
        names = {"key": NAMESPACE_LABEL, "operator": "In", "values": sorted(wanted.unmarked_namespaces)}
        yield "default", {"matchExpressions": [outside, names]}
    if wanted.unmarked_selector is not None:
        selector: Json = msgspec.to_builtins(wanted.unmarked_selector)
        yield "all", {**selector, "matchExpressions": [outside, *selector.get("matchExpressions", [])]}


def _client(wanted: Wanted, where: str) -> Json:
    client: Json = {}
    if wanted.ca_bundle:
        client["caBundle"] = msgspec.to_builtins(wanted.ca_bundle)  # bytes become base64 text
    if wanted.url:
        client["url"] = wanted.url.rstrip("/") + where
    else:
        client["service"] = {"namespace": wanted.namespace, "name": SERVICE, "path": where, "port": SERVICE_PORT}
    return client


def _outside(namespace: str) -> Json:
    return {"key": NAMESPACE_LABEL, "operator": "NotIn", "values": sorted({"kube-system", namespace})}


def _not_ours(namespace: str) -> Json:
    return {
        "name": "not-gatelift",
        "expression": f"!('system:serviceaccounts:{namespace}' in request.userInfo.groups)",
    }


def _changed(kind: HookedKind) -> Json:
    """Return the condition for updates: a marker or the spec has changed. What kubelets write is neither."""
    held = kind.hook.held
    parts = [
        "request.operation == 'CREATE'",
        "(has(object.metadata.labels) != has(oldObject.metadata.labels))",
        "(has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels)",
        "(has(object.metadata.annotations) != has(oldObject.metadata.annotations))",
        "(has(object.metadata.annotations) && object.metadata.annotations != oldObject.metadata.annotations)",
        f"({held}object.spec != oldObject.spec)",
    ]
    return {"name": "changed", "expression": " || ".join(parts)}


def _marked() -> str:
    """Markers on the object or, on an update, on the old one: else removing the queue's name would go unseen."""
    objects = ("object", "oldObject")
    sides = []
    for one in objects:
        keys = " || ".join(f"'{key}' in {one}.metadata.labels" for key in sizes.MARKERS)
        notes = " || ".join(f"'{key}' in {one}.metadata.annotations" for key in _NOTES)
        present = "" if one == "object" else f"{one} != null && "
        sides.append(
            f"{present}((has({one}.metadata.labels) && ({keys})) || (has({one}.metadata.annotations) && ({notes})))"
        )
    return " || ".join(f"({side})" for side in sides)
