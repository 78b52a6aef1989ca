"""What a Job's pod template was before it was let go at `local`: noted in an annotation, and put back. Pure.

Whoever may edit the Job can write the annotation, or take it off. So it says what to take away, and nothing else: all
that a lift does is add, hence whatever was there before is a part of what is there now. It says what was added, besides
what was before: whatever else its user has changed since is his own, and stays. That the template holds additions of
ours stands a second time in its placement's mark (`placed_mark`), which nobody can change while it runs, and so does a
digest of the annotation. Another annotation says nothing: then only our marks are taken away.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from gatelift_kinds.job import partial as job_partial
from gatelift_kinds.shared import markers, placed_mark
from gatelift_kinds.shared.generated_labels import GENERATED_LABELS
from gatelift_kinds.shared.patches import Json, Operation, decode, encode, guards, pointer, toleration_key
from gatelift_kinds.shared.placed_on import PLACED_ON
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.core import Toleration
from gatelift_kube.objects.gatelift_bounds import LABEL_VALUE
from gatelift_kube.values.unreadable import UNREADABLE

ANNOTATION_BEFORE = "gatelift.dev/template-before"
"""On a Job that runs at `local`: JSON of the template's parts as they were before a flavor was merged in."""

OURS = "gatelift.dev/"
_PARTS = (("metadata", "labels"), ("metadata", "annotations"), ("spec", "nodeSelector"), ("spec", "tolerations"))
PLACES = ("nodeSelector", "tolerations")
"""Fields of a pod template's spec that a lift adds to."""
_LABEL_VALUE = re.compile(LABEL_VALUE)


class _Marks(msgspec.Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Places(msgspec.Struct, rename="camel"):
    node_selector: dict[str, str] | None = None
    tolerations: list[dict[str, str | int | None]] | None = None


class _Parts(msgspec.Struct):
    metadata: _Marks = msgspec.field(default_factory=_Marks)
    spec: _Places = msgspec.field(default_factory=_Places)


class _Kept(_Parts):
    """What the annotation keeps: the parts as they were, and what the lift has added; older ones do not say that."""

    added: _Parts | None = None


def changed(obj: Job) -> bool:
    """Return whether the template of this user's Job holds additions of ours: by its annotation, or by its mark."""
    return ANNOTATION_BEFORE in obj.metadata.annotations or _marked(obj)


def _marked(obj: Job) -> bool:
    """Return whether the template is marked for this very Job; that of a copied manifest names another UID."""
    name, uid = obj.metadata.name, obj.metadata.uid
    return any((mark.job, mark.job_uid) == (name, uid) for mark in placed_mark.read(obj.spec.template.spec.tolerations))


def genuine(obj: Job) -> str:
    """Return what the annotation says, if it is the one that was written with the lift; "" where it is not."""
    meta = obj.metadata
    said = meta.annotations.get(ANNOTATION_BEFORE, "")
    return said if _is_genuine(said, meta.name, meta.uid, obj.spec.template.spec.tolerations) else ""


def _is_genuine(said: str, name: str, uid: str, tolerations: Iterable[Toleration]) -> bool:
    """Say whether the placement's mark names this note: beside one that names none it is believed, without one not."""
    found = [mark.noted for mark in placed_mark.read(tolerations) if (mark.job, mark.job_uid) == (name, uid)]
    named = [noted for noted in found if noted]
    return bool(found) and (not named or placed_mark.digest(said) in named)


def note(before: Json, after: Json) -> str:
    """Return what the annotation says of a template: what it was, and what a lift makes of it."""
    kept: dict[str, Json] = {section: {} for section, _ in _PARTS}
    added: dict[str, Json] = {section: {} for section, _ in _PARTS}
    for section, key in _PARTS:
        was, now = ((template.get(section) or {}).get(key) for template in (before, after))
        kept[section][key] = was
        added[section][key] = _more(was or {}, now or {}) or None
    return msgspec.json.encode({**kept, "added": added}, order="sorted").decode()


def _more(was: Any, now: Any) -> Any:
    """Return what of a part is new, without our own marks: these are known wherever they stand."""
    if isinstance(now, list):
        known = {toleration_key(one) for one in was}
        return [one for one in placed_mark.without(now) if toleration_key(one) not in known]
    return _without_ours({key: value for key, value in now.items() if was.get(key) != value})


def note_patch(obj: Job, raw: bytes, said: str) -> bytes | None:
    """Return the merge patch, for this version, that notes `said` again; "": what is there now but for our marks.

    What a flavor has added is told from what the user had by nobody then, and stays. None where that is noted.
    """
    spec: Json = decode(raw)["spec"]
    before = _before("", spec)
    noted = said or note(before, before)
    if obj.metadata.annotations.get(ANNOTATION_BEFORE) == noted:
        return None
    meta = {"uid": obj.metadata.uid, "resourceVersion": obj.metadata.resource_version}
    return encode({"metadata": {**meta, "annotations": {ANNOTATION_BEFORE: noted}}})


def restore_patch(obj: Job, raw: bytes) -> bytes:
    """Return the JSON patch that puts the template back as it was before it was let go."""
    spec: Json = decode(raw)["spec"]
    before = _before(genuine(obj), spec)
    notes = (one for one in (ANNOTATION_BEFORE, PLACED_ON) if one in obj.metadata.annotations)
    removed = [{"op": "remove", "path": pointer("metadata", "annotations", one)} for one in notes]
    restored = [*set_parts(spec["template"], before), *removed, *job_partial.local_restore(obj)]
    return encode([*guards(obj.metadata), *restored])


def kept_places(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Operation, ...]:
    """Return the operations that leave a Job's template as it was let go, where an update says how it was before.

    That is what a manifest does which is applied again: a list of tolerations is written as a whole, without what the
    lift has added, and of a Job that runs the API server takes no other template. So it is with an update that suspends
    it, and until it is put back.
    """
    spec = old.get("spec") or {}
    here, said = _places_of(old), _places_of(new)
    if all(said.get(key) == here.get(key) for key in PLACES):
        return ()
    meta: Json = old.get("metadata") or {}
    noted: str = (meta.get("annotations") or {}).get(ANNOTATION_BEFORE, "")
    marks = placed_mark.of_json(here.get("tolerations") or ())
    if spec.get("suspend") and _takes_any(old, said, marks):
        return ()
    same = _is_genuine(noted, str(meta.get("name", "")), str(meta.get("uid", "")), marks)
    before = _before(noted if same else "", spec)["spec"]
    return tuple(
        {"op": "add", "path": pointer("spec", "template", "spec", key), "value": here[key]}
        for key in PLACES
        if here.get(key) and said.get(key) != here[key] and (said.get(key) or None) == before[key]
    )


def _takes_any(old: Mapping[str, Any], said: Json, marks: tuple[Toleration, ...]) -> bool:
    """Return whether other places of a suspended Job are taken: by the policies, and by the API server until it began.

    Or are its user's alone, since nothing of this Job's own run is there to be put back.
    """
    meta: Json = old.get("metadata") or {}
    ours = {mark for mark in placed_mark.read(marks) if (mark.job, mark.job_uid) == (meta.get("name"), meta.get("uid"))}
    kept = ours <= {*placed_mark.read(placed_mark.of_json(said.get("tolerations") or ()))}
    return not ours or (kept and not (old.get("status") or {}).get("startTime"))


def _places_of(obj: Mapping[str, Any]) -> Json:
    places: Json = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
    return places


def set_parts(present: Json, wanted: Json) -> list[Operation]:
    """Return the operations that give a template the parts of another one that a lift may add to."""
    operations: list[Operation] = []
    for section, key in _PARTS:
        old = (present.get(section) or {}).get(key)
        new = (wanted.get(section) or {}).get(key)
        if old == new:
            continue
        path = pointer("spec", "template", section, key)
        operations.append({"op": "remove", "path": path} if new is None else {"op": "add", "path": path, "value": new})
    return operations


def _before(said: str, spec: Json) -> Json:
    """Return the template's parts that the annotation keeps; where it cannot be read, those of now without our marks.

    Each is a part of what is there now. So the API server takes it as it took that: what it generated stays, what the
    Job selects its pods by stays, and a key that policies leave to Gatelift is never put back.
    """
    template: Json = spec["template"]
    metadata, places = template.get("metadata") or {}, template.get("spec") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    selector, tolerations = places.get("nodeSelector") or {}, placed_mark.without(places.get("tolerations") or ())
    kept, theirs = _read(said), set[str]()
    if kept is not None:
        fixed = GENERATED_LABELS | _selected_by(spec)
        stay = {key: value for key, value in labels.items() if key in fixed}
        added, since = kept.added or _Parts(), kept.added is not None
        ours = {markers.POD_SET: markers.DEFAULT_POD_SET, **(added.metadata.labels or {})}
        own_labels = _own(labels, ours, since=since)
        theirs = {*(kept.metadata.labels or {}), *own_labels, *stay}
        own_annotations = _own(annotations, added.metadata.annotations, since=since)
        labels = {**_restored(kept.metadata.labels, labels, values=_LABEL_VALUE), **own_labels, **stay}
        annotations = {**_restored(kept.metadata.annotations, annotations), **own_annotations}
        chosen = {**(kept.spec.node_selector or {}), **_own(selector, added.spec.node_selector, since=since)}.items()
        selector = {key: value for key, value in selector.items() if (key, value) in chosen}
        tolerated = {toleration_key(one) for one in kept.spec.tolerations or ()}
        brought = {toleration_key(one) for one in added.spec.tolerations or ()}
        tolerations = [
            one
            for one in tolerations
            if toleration_key(one) in tolerated or (since and toleration_key(one) not in brought)
        ]
    return {
        "metadata": {"labels": _without_ours(labels, theirs), "annotations": _without_ours(annotations)},
        "spec": {"nodeSelector": selector or None, "tolerations": tolerations or None},
    }


def _read(said: str) -> _Kept | None:
    try:
        return msgspec.json.decode(said.encode(), type=_Kept)
    except UNREADABLE:
        return None


def _own(present: Mapping[str, str], added: Mapping[str, str] | None, *, since: bool) -> dict[str, str]:
    """Return what of it no lift has added, none where the annotation does not say: as it was, or its user's since."""
    return {key: value for key, value in present.items() if since and (added or {}).get(key) != value}


def _restored(
    kept: Mapping[str, str] | None, present: Mapping[str, str], *, values: re.Pattern[str] | None = None
) -> dict[str, str]:
    """Return what of it is there now, with the value of before: a check's update may have written another one."""
    return {
        key: value
        for key, value in (kept or {}).items()
        if key in present and (value in {"", present.get(key)} or values is None or _fits(value, values))
    }


def _fits(value: str, values: re.Pattern[str]) -> bool:
    return len(value) <= markers.LABEL_VALUE_LENGTH_MAX and values.fullmatch(value) is not None


def _selected_by(spec: Json) -> frozenset[str]:
    """Return the labels by which the Job selects its pods."""
    selector: dict[str, Any] = spec.get("selector") or {}
    expressions = {one.get("key", "") for one in selector.get("matchExpressions") or ()}
    return frozenset({*(selector.get("matchLabels") or {}), *expressions})


def _without_ours(marks: Mapping[str, str], theirs: Collection[str] = ()) -> dict[str, str] | None:
    """Return them without our own, and without the pod set's unless it is theirs: users write that key too."""
    given = {markers.POD_SET}.difference(theirs)
    return {key: value for key, value in marks.items() if not key.startswith(OURS) and key not in given} or None
