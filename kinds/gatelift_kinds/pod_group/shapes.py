"""Which role a pod of a group has, its template as it travels, and how two shapes differ. Pure.

The role hash is Kueue's, over the spec as the API server defaulted it, and is written down when the pod is made
(`shared.role_hash`). Templates are another thing: what the management API server put in leaves first, so that equal
pods have one template, whatever token volume each was given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from gatelift_admission.demand.requests import pod_requests
from gatelift_admission.values.amounts import QuantityError, to_text
from gatelift_kinds.pod_group.marks import SHOWN_CHARS_MAX
from gatelift_kinds.shared import markers, server_additions
from gatelift_kinds.shared.digests import digest
from gatelift_kinds.shared.generated_labels import own_labels
from gatelift_kinds.shared.json_parts import Json, objects
from gatelift_kinds.shared.patches import decode, encode
from gatelift_kinds.shared.role_hash import role_hash
from gatelift_kube.objects.core import PodSpec
from gatelift_kube.values.plain_text import plain

_OF_ONE_POD = ("nodeName", "ephemeralContainers", "serviceAccount")
"""Its node, who debugs it, and a deprecated twin: of no use to another server, which sets or refuses them."""
_OF_TOLERATION = ("key", "operator", "value", "effect", "tolerationSeconds")
_NO_SHAPE = frozenset({"overhead", "priority", "volumes"})
"""What an API server computes from a class, and what a claim or a token is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """What equal pods have in common: metadata and spec as JSON, each with its digest, by which they travel once."""

    metadata: bytes
    spec: bytes
    metadata_digest: str
    spec_digest: str


def role_of(spec: Json, written: str) -> str:
    """Return the role of a pod in a group that declares none: the hash that is written on it, else that of its spec."""
    return written or role_hash(spec)


def shape_of(spec: Json) -> str:
    """Return the digest of what the role hash looks at, whatever was written down: two pods of one role agree in it."""
    return role_hash(spec)


def template_of(raw: bytes) -> Template:
    """Return the template of a pod as served: without what the API server put in, our gate, and marks of the home."""
    document = decode(raw)
    spec, meta = document.get("spec") or {}, document.get("metadata") or {}
    gates = [each for each in objects(spec, "schedulingGates") if each.get("name") not in markers.GATES_OF_ADMISSION]
    server_additions.keep(spec, "schedulingGates", gates)
    server_additions.drop(spec)
    for name in _OF_ONE_POD:
        spec.pop(name, None)
    marks = {
        "labels": own_labels(markers.travelling(meta.get("labels") or {})),
        "annotations": markers.travelling(meta.get("annotations") or {}),
    }
    return Template(metadata=encode(marks), spec=encode(spec), metadata_digest=digest(marks), spec_digest=digest(spec))


def quota_digest(spec: PodSpec) -> str:
    """Return the digest of what quota is counted by: requests in all, and the class that adds to them.

    The same for a declared template and for a pod that fits it, whatever an API server put into that. What cannot be
    counted is the same as nothing.
    """
    try:
        asked = pod_requests(msgspec.structs.replace(spec, overhead={}))
    except QuantityError as error:
        return digest({"problem": str(error)})
    amounts = {name: to_text(amount, name) for name, amount in asked.items()}
    return digest({"class": spec.runtime_class_name, "requests": amounts})


def mismatch(declared: Json, spec: Json, default_class: str = "", *, placed: bool = False) -> str:
    """Return the first difference between a declared pod spec and that of a later pod; "" where they agree.

    Of requests in all as quota counts them, node selector, tolerations, classes. What an API server put into the pod is
    no difference, nor is `default_class`, the priority class that it gave to the driver. `placed`: what is declared has
    what a flavor added besides, which the other need not have.
    """
    try:
        wanted, found = _bare(declared), _bare(spec)
        return next(_differences(_unplaced(wanted, found) if placed else wanted, found, default_class), "")
    except (msgspec.ValidationError, QuantityError) as error:
        return f"cannot be compared ({plain(str(error), SHOWN_CHARS_MAX)}): mend the quantity there"


def as_json(spec: PodSpec) -> Json:
    """Return a pod set's template as `mismatch` compares it: with lists, where the value has tuples (HD-650)."""
    found: Json = msgspec.json.decode(msgspec.json.encode(spec))
    return found


def difference(template: Json, spec: Json) -> str:
    """Return the first difference between a pod set's template and the spec of a pod; "" where they ask for the same.

    A class that the template has none of was given to the pod by default.
    """
    by_default = "" if template.get("priorityClassName") else spec.get("priorityClassName") or ""
    return mismatch(template, spec, by_default)


def asks_alike(template: Json, spec: Json) -> bool:
    """Say whether a pod asks for what a pod set's template does."""
    return not difference(template, spec)


def _differences(wanted: Json, found: Json, default_class: str) -> Iterator[str]:
    asked, comes = (pod_requests(msgspec.convert(each, PodSpec)) for each in (wanted, found))
    for name in sorted(asked.keys() | comes.keys()):
        if asked.get(name, 0) != comes.get(name, 0):
            amounts = [to_text(each.get(name, 0), name) for each in (comes, asked)]
            yield f"requests.{name}: {amounts[0]}, declared {amounts[1]}"
    for name in ("nodeSelector", "runtimeClassName", "priorityClassName"):
        was, now = wanted.get(name) or None, found.get(name) or None
        by_default = name == "priorityClassName" and was is None and now == default_class
        if was != now and not by_default:
            yield f"{name}: {_said(now)}, declared {_said(was)}"
    tolerated, tolerates = (sorted(map(_toleration, objects(each, "tolerations"))) for each in (wanted, found))
    if tolerated != tolerates:
        more = [each for each in tolerates if each not in tolerated]
        less = [each for each in tolerated if each not in tolerates]
        yield f"tolerations: {_said(more)}, not declared" if more else f"tolerations: {_said(less)} is declared"


def _unplaced(wanted: Json, found: Json) -> Json:
    """Return a spec without selectors and tolerations that the other does not have: a flavor may have added them."""
    selector, other = (each.get("nodeSelector") or {} for each in (wanted, found))
    theirs = [_toleration(each) for each in objects(found, "tolerations")]
    return {
        **wanted,
        "nodeSelector": {key: value for key, value in selector.items() if key in other},
        "tolerations": [each for each in objects(wanted, "tolerations") if _toleration(each) in theirs],
    }


def _toleration(found: Json) -> str:
    """Return a toleration as text: what is empty is as good as absent, and no operator is `Equal` (the scheduler's).

    Of what is read of a Workload nothing is left that is empty, while its user may have written that (HD-650).
    """
    said = {name: found[name] for name in _OF_TOLERATION if found.get(name) not in {None, ""}}
    return _text({"operator": "Equal", **said})


def _text(value: Any) -> str:
    """Return a JSON value as text, its keys in order."""
    return msgspec.json.encode(value, order="sorted").decode()


def _bare(spec: Json) -> Json:
    """Return a pod spec without what its user did not write; the overhead follows from the runtime class."""
    bare = {name: value for name, value in spec.items() if name not in _NO_SHAPE}
    server_additions.drop(bare)
    return bare


def _said(value: Any) -> str:
    if value is None or value == []:
        return "none"
    text = value if isinstance(value, str) else ", ".join(value) if isinstance(value, list) else _text(value)
    return plain(text, SHOWN_CHARS_MAX)
