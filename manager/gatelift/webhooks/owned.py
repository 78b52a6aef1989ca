"""Who may write that an object of a kind which others queue is owned by one of such a kind. Pure.

By such a reference the walk of `ancestry` goes on, so it has to be true: a RayCluster that names a queued RayJob as its
controller has its pods charged by that one, and its controller need not hold it back. So only an account that
`gatelift.podMakers` names, or one of the cluster's own controllers, writes it (decision 97).
"""

from __future__ import annotations

from gatelift.webhooks.ancestry import KnownKinds, shown
from gatelift.webhooks.review import Json, Question
from gatelift_kinds.shared import unserved
from gatelift_kinds.shared.review import Verdict
from gatelift_kinds.shared.rules import forbidden
from gatelift_kube.objects.meta import OwnerReference


def verdict(kinds: KnownKinds, makers: frozenset[str], question: Question) -> Verdict:
    """Return the error of a reference that is new and that nobody vouches for."""
    if question.username in makers or question.username.startswith(unserved.CLUSTERS_OWN):
        return Verdict()
    before = _claims(kinds, question.old)
    for owner in _claims(kinds, question.new):
        if owner not in before:
            text = (
                f"only accounts that gatelift.podMakers names may say that {shown(owner)} is its controller, "
                "since its pods are charged there: leave the owner out"
            )
            return Verdict(errors=(forbidden("metadata.ownerReferences", text),))
    return Verdict()


def _claims(kinds: KnownKinds, document: Json) -> list[OwnerReference]:
    """Return the controllers that an object names of kinds which others queue; it may be of any form."""
    metadata = document.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    found = [_reference(each) for each in owners or () if isinstance(each, dict) and each.get("controller") is True]
    return [each for each in found if kinds.queued_elsewhere(each)]


def _reference(owner: Json) -> OwnerReference:
    texts = (str(owner.get(key) or "") for key in ("apiVersion", "kind", "name", "uid"))
    api_version, kind, name, uid = texts
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid, controller=True)
