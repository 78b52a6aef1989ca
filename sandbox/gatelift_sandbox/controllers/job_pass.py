"""One look at a Job: what `jobs` and `job_status` work on."""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift_sandbox.controllers.controller import Action
from gatelift_sandbox.controllers.job_pods import Tally
from gatelift_sandbox.embedded.documents import Document


@dataclass(slots=True, kw_only=True)
class Pass:
    """One look at a Job: what is there and what shall become of it."""

    job: Document
    now: float
    tally: Tally
    status: Document
    actions: list[Action] = field(default_factory=list)

    @property
    def spec(self) -> Document:
        """Return the Job's spec."""
        found: Document = self.job["spec"]
        return found

    @property
    def conditions(self) -> list[Document]:
        """Return the conditions it shall have."""
        found: list[Document] = self.status.setdefault("conditions", [])
        return found
