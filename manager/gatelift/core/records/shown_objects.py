"""What of an attempt the objects of its user show, by their names. Neighbours: `attempts`, of which it is a part."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class ShownObjects:
    """Changed by its methods only."""

    unshown_since: dict[str, float] = field(default_factory=dict)  # by object, of those that show what was before
    mirrored_at: dict[str, float] = field(default_factory=dict)  # by object, when it was last asked to be written
    stages_shown: dict[str, frozenset[str]] = field(default_factory=dict)  # by object, that it ran, that it was over

    def shown(self, name: str) -> None:
        """Take that a user's object shows what was reported, or is being written so."""
        self.unshown_since.pop(name, None)

    def mirrors(self, name: str, now: float) -> None:
        """Take that a user's object is being written so."""
        self.shown(name)
        self.mirrored_at[name] = now

    def unshown(self, name: str, now: float) -> float:
        """Take that it does not; return since when."""
        return self.unshown_since.setdefault(name, now)

    def has_shown(self, name: str, stages: frozenset[str]) -> frozenset[str]:
        """Take what a user's object shows of how far it is; return all that it has shown in this attempt."""
        before = self.stages_shown.get(name, frozenset())
        if stages <= before:
            return before
        self.stages_shown[name] = before | stages
        return self.stages_shown[name]
