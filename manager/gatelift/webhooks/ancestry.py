"""Whose business a pod is that something else owns: a walk from owner to owner. Pure; `ancestors` reads for it.

Kueue leaves a pod alone once anything above it is queued. What stands in an owner reference anybody may write, of a pod
and of what is between. So here a reference counts only where who wrote it is known (decision 97): that of the pod where
one of the accounts makes it that `gatelift.podMakers` names, that between two objects of kinds which a controller of
others queues (`integrations.externalFrameworks`), since nobody else may write that one (`owned`). All other pods are
queued and charged themselves, and the walk tells their makers why.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass

from gatelift_kinds.registry import SERVED
from gatelift_kinds.shared import markers, unserved
from gatelift_kube.objects.meta import ObjectMeta, OwnerReference
from gatelift_kube.values.plain_text import plain
from gatelift_kube.values.resources import Resource

HOPS_MAX = 10
"""Kueue's: so many owners are looked at, one above the other."""
READ_SECONDS_MAX = 3.0
"""For a whole walk; shorter than the API server waits for us, so that there is an answer of ours."""
_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")
_NAME_CHARS_MAX = 100
_ITSELF = "the pod is queued and charged by itself"


class OwnerStanding(enum.Enum):
    """What a walk says of a pod."""

    NOBODYS = "nobody that is queued owns it"
    OWNERS = "its owner is queued, and charged for it"
    CLAIMED = "it names an owner that is queued, and that it is that one's nobody vouches for"
    TOO_DEEP = "more owners than are looked at"
    UNREAD = "an owner could not be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestry:
    """The end of a walk; `text` tells people, in one line, "" where there is nothing to be told."""

    standing: OwnerStanding
    text: str = ""


NOBODYS = Ancestry(standing=OwnerStanding.NOBODYS)
REASONS = {
    OwnerStanding.CLAIMED: "OwnerNotBelieved",
    OwnerStanding.TOO_DEEP: "JobNestingTooDeep",
    OwnerStanding.UNREAD: "OwnerNotRead",
}
"""Of the event at the pod's owner; the second is Kueue's."""


class KnownKinds:
    """The kinds that Kueue queues or walks over, and those that a controller of others queues here."""

    def __init__(self, external: Iterable[str] = ()) -> None:
        """`external`: as `integrations.externalFrameworks` has them, `Kind.version.group`."""
        built_in = ((each.kind, each.group, each.plural, each.version) for each in unserved.MAKERS)
        self._known = {(kind, group): (plural, version) for kind, group, plural, version in built_in}
        for each in SERVED.travelling:
            self._known[each.kind, each.group] = (each.plural, each.version)
        self._elsewhere: dict[tuple[str, str], Resource] = {}
        for name in external:
            kind, _, rest = name.partition(".")
            version, _, group = rest.partition(".")
            plural = self._known.get((kind, group), (_plural(kind), ""))[0]
            self._elsewhere[kind, group] = Resource(group, version, kind, plural)

    @property
    def external(self) -> tuple[Resource, ...]:
        """Return the resources that a controller of others queues."""
        return tuple(self._elsewhere.values())

    def queued_elsewhere(self, owner: OwnerReference) -> bool:
        """Return whether a controller of others queues that kind."""
        return kind_of(owner) in self._elsewhere

    def resource(self, owner: OwnerReference) -> Resource | None:
        """Return what to read an owner as, None where its kind is in no table: such a one is not queued."""
        kind, group = kind_of(owner)
        if (kind, group) in self._elsewhere:
            return self._elsewhere[kind, group]
        plural, version = self._known.get((kind, group), ("", ""))
        if version == unserved.ANY_VERSION:
            version = owner.api_version.rpartition("/")[2]
        return Resource(group, version, kind, plural) if plural and _VERSION.fullmatch(version) else None


class Walk:
    """One walk, from a pod's controller upwards. `asks` says what is to be read next, `end` where it has ended."""

    def __init__(self, kinds: KnownKinds, first: OwnerReference, *, vouched: bool) -> None:
        """`vouched`: who makes the pod is known to name its true owner."""
        self._kinds = kinds
        self._vouched = vouched
        self._seen: set[str] = set()
        self._hops = 0
        self._at = first
        self.asks: Resource | None = None
        self.end = NOBODYS
        self._step(first)

    @property
    def name(self) -> str:
        """Return the name of what is to be read."""
        return self._at.name

    def read(self, found: ObjectMeta) -> None:
        """Take what is there under that name. Another object of the name is no owner."""
        owner = self._at
        if found.uid != owner.uid:
            self._finish(NOBODYS)
        elif found.labels.get(markers.QUEUE_NAME) and self._is_queued(owner):
            self._finish(self._queued(owner))
        else:
            self._vouched = self._vouched and self._kinds.queued_elsewhere(owner)
            above = next((each for each in found.owner_references if each.controller), None)
            if above is None:
                self._finish(NOBODYS)
            else:
                self._step(above)

    def unread(self, why: str) -> None:
        """Take that it could not be read."""
        self._finish(Ancestry(standing=OwnerStanding.UNREAD, text=f"{shown(self._at)} {why}: {_ITSELF}"))

    def _step(self, owner: OwnerReference) -> None:
        resource = self._kinds.resource(owner)
        if resource is None or owner.uid in self._seen:
            self._finish(NOBODYS)
        elif self._hops >= HOPS_MAX:
            text = f"has more than {HOPS_MAX} owners one above the other, up to {shown(owner)}: {_ITSELF}"
            self._finish(Ancestry(standing=OwnerStanding.TOO_DEEP, text=text))
        else:
            self._hops += 1
            self._seen.add(owner.uid)
            self._at, self.asks = owner, resource

    def _is_queued(self, owner: OwnerReference) -> bool:
        """Return whether a queue's name on such an owner counts: on all others it holds nothing back."""
        return self._kinds.queued_elsewhere(owner) or SERVED.resource_of(owner) in SERVED.makers

    def _queued(self, owner: OwnerReference) -> Ancestry:
        if self._vouched and self._kinds.queued_elsewhere(owner):
            return Ancestry(standing=OwnerStanding.OWNERS)
        text = (
            f"{shown(owner)} is queued, but nobody whom gatelift.podMakers names says that this is its pod: {_ITSELF}"
        )
        return Ancestry(standing=OwnerStanding.CLAIMED, text=text)

    def _finish(self, end: Ancestry) -> None:
        self.asks, self.end = None, end


def kind_of(owner: OwnerReference) -> tuple[str, str]:
    """Return kind and group of an owner."""
    return owner.kind, owner.api_version.rpartition("/")[0]


def shown(owner: OwnerReference) -> str:
    """Return how an owner is named to people, whatever somebody wrote into the reference."""
    return f"{plain(owner.kind, _NAME_CHARS_MAX)} {plain(owner.name, _NAME_CHARS_MAX)}"


def _plural(kind: str) -> str:
    """Return the usual plural of a kind, as resources are named."""
    name = kind.lower()
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"
