"""What holds the manager back from its own decisions: doubts about the record, each as narrow as it can be. Pure.

P7: a cluster that names a later epoch than the record knows holds that workload, and gets no new work itself; its word
never holds more than that. One that names the record's own epoch, of a workload that is placed nowhere by that, only
holds that workload, which is charged while it runs. Neighbours: `reports` (where doubts come from), `dispatch`,
`following` (who ask).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from gatelift.core.state.few_lines import FewLines
from gatelift.core.state.recovery_progress import Recovery
from gatelift.core.state.tampered import TamperedWorkloads
from gatelift.core.state.term_doubts import TermDoubts
from gatelift_wire.values.keys import PlacementKey

HALT_TOLD_SECONDS = 15.0
"""A lead that begins hears its clusters within seconds: nothing is written of that wait before it is a long one."""
GONE_MAX = 1_000
"""Placements that a cluster named of Workloads that are gone since, by which it stays without new work. Of a Workload
that is there each cluster names one: what would be forgotten of those would run twice (HD-273)."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """A placement that a cluster names and whose epoch is later than any that the record knows."""

    key: PlacementKey
    over: bool
    """Whether nothing of it runs there any more, by the cluster's word."""
    spared: bool = False
    """Whether it runs since before a recovery: nobody is mistaken, and it is left to come to its own end."""
    level: bool = False
    """Whether its epoch is the highest that the record knows, which only does not say that it is placed."""
    proved: bool = True
    """Whether our own mark or record says so, and not the cluster alone: what may run by that is charged."""
    possible: bool = True
    """Whether settings let it be there; what is neither that nor proved holds nothing."""

    def judged(self, *, proved: bool, possible: bool) -> Ahead:
        """Return the same with what the cluster's word is worth."""
        return replace(self, proved=proved, possible=possible)

    @property
    def suspect(self) -> bool:
        """Say whether its cluster gets no new work for it: either that or the record is mistaken about more."""
        return not (self.spared or (self.level and self.possible))


@dataclass(slots=True)
class Caution:
    """The doubts of one leader. `halted`: why nothing at all is placed, "" when nothing speaks against it."""

    halted: str = ""
    halted_since: float = 0.0
    """When it began that nothing is placed."""
    lines: FewLines = field(default_factory=FewLines)
    """What each cluster's words have left in the log."""
    set_aside: set[str] = field(default_factory=set)
    """UIDs of Workloads whose record could not be read: nothing is said of their placements until it can."""
    uncompared: dict[str, set[str]] = field(default_factory=dict)
    """UID of a Workload -> clusters of whose last inventory not all could be compared with its record. Set aside."""
    recovery: Recovery = field(default_factory=Recovery)
    tampered: TamperedWorkloads = field(default_factory=TamperedWorkloads)
    terms: TermDoubts = field(default_factory=TermDoubts)
    """Whether we still lead, while a record says otherwise (`higher_terms`)."""
    _nobodys: dict[str, dict[str, set[int]]] = field(default_factory=dict)
    """Cluster -> UID -> epochs of what its last inventory lists that only wears our labels (`belief`)."""
    _ahead: dict[str, dict[str, Ahead]] = field(default_factory=dict)  # UID -> cluster -> what it names
    _clusters: dict[str, set[str]] = field(default_factory=dict)  # cluster -> UIDs
    _gone: dict[str, dict[str, None]] = field(default_factory=dict)  # cluster -> UIDs of Workloads that are gone
    _suspected: dict[str, dict[str, Ahead]] = field(default_factory=dict)  # cluster -> UID -> what nobody explains
    _listed: dict[str, set[str]] = field(default_factory=dict)  # cluster whose list is compared -> UIDs it named in it
    _doubted: set[str] = field(default_factory=set)  # clusters whose last greeting brought a seal that is not ours
    to_tell: set[str] = field(default_factory=set)
    """Clusters that get no new work, or get it again, for other reasons than they were last shown with."""

    def halt(self, why: str, now: float) -> str:
        """Place nothing at all, or, with "", place again; return why nothing was placed until now."""
        before, self.halted = self.halted, why
        if not before:
            self.halted_since = now
        return before

    def halt_is_told_at(self) -> float:
        """Return from when on people are told that nothing is placed: most leads have heard all before."""
        return self.halted_since + HALT_TOLD_SECONDS

    def cannot_read(self, uid: str) -> None:
        """Take that the record of a Workload could not be read."""
        self.set_aside.add(uid)

    def can_read(self, uid: str) -> None:
        """Take that it could, or that the Workload is gone."""
        self.set_aside.discard(uid)
        self.uncompared.pop(uid, None)

    def cannot_compare(self, cluster: str, uid: str) -> None:
        """Take that what a cluster has of a Workload could not be compared with its record."""
        self.set_aside.add(uid)
        self.uncompared.setdefault(uid, set()).add(cluster)

    def uncompared_at(self, cluster: str) -> set[str]:
        """Return of which Workloads that is so at a cluster."""
        return {uid for uid, clusters in self.uncompared.items() if cluster in clusters}

    def compared(self, cluster: str, uid: str) -> None:
        """Take that it could, or that the cluster is gone."""
        clusters = self.uncompared.get(uid, set())
        clusters.discard(cluster)
        if not clusters:
            self.can_read(uid)

    def take_to_tell(self) -> set[str]:
        """Return, once, the clusters that are to be shown with another reason."""
        to_tell, self.to_tell = self.to_tell, set()
        return to_tell

    # --- what only wears our labels -------------------------------------------------------------------------------

    def list_nobodys(self, cluster: str, key: PlacementKey) -> bool:
        """Take that a cluster lists what only wears our labels; False when it lists some of that UID already."""
        epochs = self._nobodys.setdefault(cluster, {}).setdefault(key.uid, set())
        is_first = not epochs
        epochs.add(key.epoch)
        return is_first

    def is_nobodys(self, cluster: str, key: PlacementKey) -> bool:
        """Say whether a cluster's last inventory lists this key on what only wears our labels."""
        return key.epoch in self._nobodys.get(cluster, {}).get(key.uid, ())

    def forget_nobodys(self, cluster: str) -> None:
        """Take that a cluster lists all that it has anew."""
        self._nobodys.pop(cluster, None)

    # --- later epochs -------------------------------------------------------------------------------------------

    def holds(self, uid: str) -> bool:
        """Say whether nothing new of a workload is started: some cluster names a later epoch that may be there."""
        named = self._ahead.get(uid)
        if named is None:
            return False
        return any(ahead.possible for ahead in named.values())

    def runs_unrecorded(self, uid: str) -> bool:
        """Say whether a workload runs, by a cluster's word, in the epoch that its record shows as placed nowhere."""
        return any(ahead.level and ahead.possible and not ahead.over for ahead in self._ahead.get(uid, {}).values())

    def runs_beside(self, uid: str) -> bool:
        """Say whether a workload is proved to run where its record does not place it."""
        named = self._ahead.get(uid)
        if named is None:
            return False
        return any(ahead.proved and not ahead.over for ahead in named.values())

    def has_proved(self, cluster: str, key: PlacementKey) -> bool:
        """Say whether a cluster has proved that it has a placement, by what it listed in this session."""
        ahead = self._ahead.get(key.uid, {}).get(cluster)
        return ahead is not None and ahead.proved and ahead.key == key

    def spares(self, cluster: str, key: PlacementKey) -> bool:
        """Say whether a cluster has listed a placement that runs since before a recovery."""
        ahead = self._ahead.get(key.uid, {}).get(cluster)
        return ahead is not None and ahead.spared and ahead.key == key

    def cordons(self, cluster: str) -> bool:
        """Say whether a cluster gets no new work."""
        return cluster in self._suspected or cluster in self._doubted

    def doubts_seal(self, cluster: str) -> bool:
        """Say whether a cluster's last greeting brought a seal that is in doubt."""
        return cluster in self._doubted

    def suspected(self, cluster: str) -> tuple[Ahead | None, int]:
        """Return the first of what cordons a cluster by its own words, and how many there are."""
        mine = self._suspected.get(cluster, {})
        return next(iter(mine.values()), None), len(mine)

    def doubt_seal(self, cluster: str, *, doubted: bool) -> bool:
        """Take whether the seal of a cluster's last greeting is in doubt; True when that is another answer."""
        if doubted == (cluster in self._doubted):
            return False
        (self._doubted.add if doubted else self._doubted.discard)(cluster)
        self.to_tell.add(cluster)
        return True

    def named_by(self, cluster: str) -> tuple[Ahead, ...]:
        """Return what a cluster names with a later epoch than the record's."""
        return tuple(self._ahead[uid][cluster] for uid in sorted(self._clusters.get(cluster, ())))

    def named(self, uid: str) -> tuple[tuple[str, Ahead], ...]:
        """Return which clusters name a later epoch of a workload, as far as that is possible, and what exactly."""
        ahead = self._ahead.get(uid)
        if ahead is None:
            return ()
        return tuple(sorted((each for each in ahead.items() if each[1].possible), key=lambda each: each[0]))

    def name(self, cluster: str, ahead: Ahead) -> bool:
        """Take that a cluster names a later epoch; True when that is news."""
        uid = ahead.key.uid
        if cluster in self._listed:
            self._listed[cluster].add(uid)
        before = self._ahead.get(uid, {}).get(cluster)
        if before == ahead:
            return False
        self._suspect(cluster, uid, ahead if ahead.suspect else None)
        self._ahead.setdefault(uid, {})[cluster] = ahead
        self._clusters.setdefault(cluster, set()).add(uid)
        return before is None

    def _suspect(self, cluster: str, uid: str, ahead: Ahead | None) -> None:
        mine = self._suspected.get(cluster, {})
        if mine.get(uid) == ahead:
            return
        self.to_tell.add(cluster)
        if ahead is not None:
            self._suspected.setdefault(cluster, mine)[uid] = ahead
            return
        del mine[uid]
        if not mine:
            del self._suspected[cluster]

    def settle(self, cluster: str, uid: str) -> bool:
        """Take that nothing of a workload is at a cluster any more; True when it was: others may hold it still."""
        named = self._ahead.get(uid, {})
        before = named.pop(cluster, None)
        if before is None:
            return False
        self._suspect(cluster, uid, None)
        self._gone.get(cluster, {}).pop(uid, None)
        here = self._clusters[cluster]
        here.discard(uid)
        if not here:
            del self._clusters[cluster]
        if not named:
            del self._ahead[uid]
        return True

    def lists_anew(self, cluster: str) -> None:
        """Take that a cluster begins to list all that it has; what it named before holds until that is compared."""
        self._listed[cluster] = set()

    def listed_all(self, cluster: str, *, but: AbstractSet[str]) -> list[str]:
        """Forget what a cluster named before and has not listed, `but` of some Workloads; return of whom it did."""
        listed = self._listed.pop(cluster, set())
        before = sorted(self._clusters.get(cluster, set()) - listed - but)
        return [uid for uid in before if self.settle(cluster, uid)]

    def is_gone(self, uid: str) -> None:
        """Take that a Workload is gone of which some clusters name a later epoch: they stay without new work."""
        for cluster in self._ahead.get(uid, {}):
            self._gone.setdefault(cluster, {})[uid] = None
        for cluster in tuple(self._ahead.get(uid, {})):
            while len(self._gone[cluster]) > GONE_MAX:
                self.settle(cluster, next(iter(self._gone[cluster])))

    def forget(self, cluster: str) -> list[str]:
        """Forget all that a cluster named: it lists all anew, or is not expected any more. Return of whom it did."""
        return [uid for uid in sorted(self._clusters.get(cluster, ())) if self.settle(cluster, uid)]
