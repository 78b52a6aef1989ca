"""Values of the webhook's part of a kind: what it may know, what it says. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class ErrorKind(enum.Enum):
    """Kinds of field errors, with the words of the Kubernetes API."""

    REQUIRED = "Required value"
    INVALID = "Invalid value"
    FORBIDDEN = "Forbidden"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One thing wrong: where, which rule, and what to do about it, in one line."""

    kind: ErrorKind
    path: str
    text: str
    value: str | None = None

    def __str__(self) -> str:
        shown = f': "{self.value}"' if self.kind is ErrorKind.INVALID and self.value is not None else ""
        return f"{self.path}: {self.kind.value}{shown}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What validation says; allowed when there is no error. Warnings are shown to the user either way."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """True when nothing is wrong."""
        return not self.errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What of a change is put back before it is judged: JSON patch operations, and what the user is told of it."""

    operations: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()


NO_CORRECTION = Correction()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldChange:
    """One thing that a run that has begun takes no notice of: its path, the new value, and what is wrong with it."""

    path: str
    value: str | None
    """None where it is too long to be shown."""
    text: str
    """`{cluster}` in it stands for the name of the cluster where it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFacts:
    """What the webhook's caches say of an object's surroundings.

    `local_queues` maps each LocalQueue of the namespace to whether its ClusterQueue has a MultiKueue check.
    """

    namespace_selected: bool = True
    """`managedJobsNamespaceSelector` matches the namespace."""
    pod_taken: bool = True
    """Pods are queued, and `integrations.podOptions` selects this one."""
    manage_without_queue: bool = False
    """Kueue's `manageJobsWithoutQueueName`."""
    local_queues: Mapping[str, bool] = field(default_factory=dict)
    topology_gate: bool = False
    """Pods get the gate of topology besides, as Kueue sets it: a lift takes both off."""
    default_priority_class: bool = False
    """A WorkloadPriorityClass called `default` exists and defaulting of it is on."""
    owner_managed: bool = False
    """A pod is made for its controller, which is itself queued: what holds that back holds the pod back."""
    owner_claimed: bool = False
    """A pod names a queued Job as its controller, which does not make it: nothing of that Job holds it back."""
    reserved_by: str = ""
    """The Workload of the object, while it holds quota and what that was given for is changed."""
    runs_on: str = ""
    """The other cluster that Workload was given to, which has the object as it was then; "" where there is none."""
    by_agent: bool = False
    """An agent made the object, for another manager: leave it alone."""
