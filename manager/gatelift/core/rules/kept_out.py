"""Why a Workload is kept out of its queue whatever quota there is: one answer for all who ask."""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.rules import homebound, successors
from gatelift.core.state.core import Core
from gatelift_kube.decoding.unreadable_templates import why_unreadable
from gatelift_kube.objects.kueue import Workload


def why(core: Core, known: Workload) -> tuple[str, str] | None:
    """Return reason and message, None where nothing keeps it out."""
    unread = why_unreadable(known)
    if unread:
        return texts.UNREADABLE_TEMPLATE, texts.unreadable_template(unread)
    return successors.waits(core, known) or homebound.waits(core, known)
