"""Whether a waiting Workload asks for what its object does, and the write by which it does. Neighbour: `owners`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from gatelift.core.api.purposes import Purpose
from gatelift.core.records.chain import Chain, Role
from gatelift.core.records.work import Owner
from gatelift.core.state import api_requests
from gatelift.core.state.core import Core
from gatelift.core.works import choosing
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import sizes
from gatelift_kinds.shared.sizes import Counts
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.kueue import Workload, WorkloadSpec


def changing(core: Core, workload: Workload) -> bool:
    """Say whether a waiting Workload is not (any more) what its object asks for, or that one is still to be held back.

    A pod changes little, but whoever may edit Workloads can make one ask for less. The object's own pass sees to it.
    """
    work = core.knowledge.work_of(workload)
    if work.gathered is not None:
        gathered = work.gathered
        return gathered.lacks() is not None or gathered.waits(workload) or not gathered.matches(workload)
    owner = work.only_object
    if owner is None:
        return False
    if owner.kind.resizes(owner.object) and owner.kind.same_shape(workload, owner.object):
        role = choosing.role_of(core, work, workload)
        if role is not None:
            return _resizing(core, owner, workload, role)
    if owner.kind.pods_are_children and not owner.kind.suspended(owner.object):
        return True
    return not owner.kind.equivalent(workload, owner.object)


def _resizing(core: Core, owner: Owner, workload: Workload, role: Role) -> bool:
    """Say whether a slice that waits asks for another size than its object, or that is still to be held back.

    Where a larger one waits behind it, it goes on with the size that it had; not with more than is wanted by now.
    """
    wanted, asked = owner.kind.wanted(owner.object), sizes.counts_of(workload)
    if role is Role.TARGET:
        chain = choosing.chain_of(core, core.knowledge.work_of(workload))
        has = edited(core, chain) if chain is not None else None
        return asked != (wanted if has is None else sizes.raised(wanted, has))
    if owner.kind.pods_are_children and not owner.kind.suspended(owner.object):
        return True
    grows = choosing.target_of(core, core.knowledge.work_of(workload)) is not None
    return sizes.lowered(asked, wanted) != asked if grows else asked != wanted


def edited(core: Core, chain: Chain) -> Counts | None:
    """Return what its cluster has by the number of a record, where somebody has written less beside it (HD-602)."""
    record = chain.record
    attempt = core.attempts.get(record.uid) if record is not None else None
    if record is None or attempt is None or not attempt.live:
        return None
    carried = attempt.size.counts_at(record.number)
    asked = sizes.counts_of(core.knowledge.workloads[record.key])
    return carried if carried is not None and sizes.is_raised(asked, carried) else None


def is_alike(kind: Kind[Any], workload: Workload, obj: KubeObject) -> bool:
    """Say whether a Workload describes an object, whatever size that is wanted to have by now where it is elastic."""
    return kind.equivalent(workload, obj) or (kind.resizes(obj) and kind.same_shape(workload, obj))


_NOTHING_ASKED = dict.fromkeys(field.encode_name for field in msgspec.structs.fields(WorkloadSpec))
"""What an owner does not ask for any more is taken off its Workload: a merge patch keeps what it does not name."""


def update_workload(core: Core, workload: Workload, asked: dict[str, Any], kept: Iterable[str] = ()) -> None:
    """Ask for the write by which a waiting Workload has the spec that is asked for; that it is active stays.

    `kept`: fields that stay as they are, too.
    """
    spec = {**_NOTHING_ASKED, **asked}
    for name in ("active", *kept):
        spec.pop(name, None)
    metadata = {"uid": workload.metadata.uid, "resourceVersion": workload.metadata.resource_version}
    api_requests.patch_workload(
        core, workload, msgspec.json.encode({"metadata": metadata, "spec": spec}), Purpose.UPDATE_WORKLOAD, status=False
    )
