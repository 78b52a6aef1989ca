"""Why a Workload is kept out of its queue whatever quota there is: one answer for all who ask."""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.rules import homebound, successors
from gatelift.core.state.core import Core
from gatelift_kinds.shared.made_for import OWNERS_MAX, names_too_many
from gatelift_kube.decoding.unreadable_templates import why_unreadable
from gatelift_kube.objects.kueue import Workload

TOO_MANY_OWNERS = f"metadata.ownerReferences: more than {OWNERS_MAX}, so it is nobody's and left alone: name fewer"


def why(core: Core, known: Workload) -> tuple[str, str] | None:
    """Return reason and message, None where nothing keeps it out."""
    unread = why_unreadable(known)
    if unread:
        return texts.UNREADABLE_TEMPLATE, texts.unreadable_template(unread)
    if len(known.metadata.owner_references) > OWNERS_MAX and names_too_many(known):
        return texts.TOO_MANY_OWNERS, TOO_MANY_OWNERS
    return successors.waits(core, known) or homebound.waits(core, known)
