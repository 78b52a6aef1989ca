"""How far one leader has come in finding out whether its record is the newest, and in going on where it is not. Pure.

Only this module writes it. Neighbours: `raising` decides; `recovery_values` is what stands in the API.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from gatelift.core.clusters.link_values import PlacementsInventoried
from gatelift.core.state.recovery_asked import AskedClusters, Without
from gatelift.core.state.recovery_values import Finding, RecoverWord, RecoveryStage, Told, is_fenced
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.keys import PlacementKey

UNEXPLAINED_MAX = 100_000
"""Placements of a cluster that no Workload explains and that are remembered: as many as an inventory has."""


@dataclass(slots=True)
class Recovery:
    """What one leader knows of the age of its record.

    `cold`: it found a Lease that may be old, or that of one who waited for clusters itself, and has not heard all
    clusters of its record yet (`awaited`). `held`: inventories that came while nothing was concluded from them; they
    are compared once it goes on.
    """

    clusters: dict[str, WorkerCluster] = field(default_factory=dict)
    finding: Finding | None = None
    word: RecoverWord | None = None
    cold: bool = False
    settled: bool = False
    """Whether our own Lease says, by our last word, that who follows need not wait."""
    began: str = ""
    """When the term began, for people."""
    sessions_before: dict[str, int] = field(default_factory=dict)
    """The session of each cluster as the term began."""
    greeted: dict[str, float] = field(default_factory=dict)
    """Of `awaited` those that have begun a session in this term, and when the first of them was seen as written."""
    awaited: set[str] = field(default_factory=set)
    asked: AskedClusters = field(default_factory=AskedClusters)
    without: Without = field(default_factory=lambda: Without(""))
    """What persons have said of clusters whose WorkerClusters are gone."""
    unvouched: set[str] = field(default_factory=set)
    """Of `awaited` those that have listed what they have, where that does not tell what ran there before."""
    unproven: set[str] = field(default_factory=set)
    """Of `awaited` those whose list proves nothing of what it does not name, as their agents say themselves."""
    held: dict[str, PlacementsInventoried] = field(default_factory=dict)
    again: list[PlacementsInventoried] = field(default_factory=list)
    listed: dict[str, int] = field(default_factory=dict)
    unexplained: dict[str, dict[PlacementKey, str]] = field(default_factory=dict)  # -> the namespace it is in
    idle: dict[str, set[PlacementKey]] = field(default_factory=dict)
    """Cluster -> of what nothing explains, that of which its last list says that nothing runs."""
    to_raise: set[ObjectKey] = field(default_factory=set)
    unraised: set[ObjectKey] = field(default_factory=set)
    """Of those, for which nobody waits: the API server refuses what is to be written."""
    raising: bool = False
    counter: int = 0
    """The number in our own Lease."""

    # --- a term -------------------------------------------------------------------------------------------------

    def begin_term(self, *, warm: bool, counter: int, began: str) -> None:
        """Begin a term. `warm`: this process saw the Lease of a settled lead move a moment before it took it."""
        self.settled, self.cold, self.began = warm, not warm, began
        self.counted(counter)
        self.unvouched, self.unproven, self.awaited = set(), set(), set()
        self.greeted = {}
        self.sessions_before = {name: found.status.session for name, found in self.clusters.items()}
        self.ask_all()

    def counted(self, counter: int) -> None:
        """Take the number in our own Lease."""
        self.counter = max(self.counter, counter)

    def warm_up(self) -> None:
        """Take that nobody is waited for any more that the record calls connected."""
        self.cold = False

    def settle(self, *, settled: bool) -> None:
        """Take that our own Lease is to say whether who follows need not wait."""
        self.settled = settled

    # --- WorkerClusters, and what stands on `local` -----------------------------------------------------------------

    def cluster_seen(self, found: WorkerCluster) -> None:
        """Take a WorkerCluster as it is now."""
        self.clusters[found.metadata.name] = found

    def uid_of(self, name: str) -> str:
        """Return the UID of a WorkerCluster, "" where there is none."""
        found = self.clusters.get(name)
        return found.metadata.uid if found is not None else ""

    def cluster_gone(self, last: WorkerCluster) -> WorkerCluster:
        """Forget a WorkerCluster; return it as it was known."""
        return self.clusters.pop(last.metadata.name, last)

    def recall(self, told: Told) -> None:
        """Take what a leader has written."""
        self.finding = told.finding
        self.asked.recall(told.clusters)

    def said(self, word: RecoverWord | None, without: Without) -> None:
        """Take what persons have written."""
        self.word, self.without = word, without

    # --- a finding ----------------------------------------------------------------------------------------------

    def halt(self, finding: Finding) -> None:
        """Take a finding, after which all is to be asked anew."""
        self.finding, self.raising = finding, False
        self.to_raise.clear()
        self.ask_all()

    def find_higher(self, finding: Finding, counter: int, term: int) -> None:
        """Take that more was proven of what was found."""
        counter, term = max(finding.counter, counter), max(finding.term, term)
        self.finding = msgspec.structs.replace(finding, counter=counter, term=term)

    def begin_raising(self, keys: set[ObjectKey]) -> None:
        """Take that all are heard, and that the epochs of these Workloads are to be raised."""
        self.raising, self.to_raise = True, keys
        self.unraised.clear()

    def raised(self, key: ObjectKey) -> None:
        """Take that a Workload has its epoch, or needs none."""
        self.to_raise.discard(key)
        self.unraised.discard(key)

    def not_raised(self, key: ObjectKey) -> bool:
        """Take that the API server refuses to raise the epoch of a Workload; True when that is news."""
        is_news = key not in self.unraised
        self.unraised.add(key)
        return is_news

    def end(self) -> None:
        """Take that all epochs are raised: the finding is answered."""
        self.finding, self.raising = None, False
        self.asked = AskedClusters()

    # --- who is waited for --------------------------------------------------------------------------------------

    def heard(self, name: str) -> bool:
        """Take that a cluster has listed what it has, or need not be waited for; True when it was waited for."""
        self.unvouched.discard(name)
        was_awaited = name in self.awaited
        self.awaited.discard(name)
        return was_awaited

    def begins(self, found: WorkerCluster, term: int, now: float) -> bool:
        """Take that a cluster shows this session; True when it is its first in this term. No later one begins anew."""
        name, session = found.metadata.name, found.status.session
        first = name in self.awaited and name not in self.greeted
        if not (first and found.status.term == term and session > self.sessions_before.get(name, 0)):
            return False
        self.greeted[name] = now
        return True

    def unheard(self) -> dict[str, float]:
        """Return who has greeted and is waited for without a proof of a restore, and since when."""
        if self.finding is not None:
            return {}
        return {name: since for name, since in self.greeted.items() if name in self.awaited}

    def await_anew(self, name: str) -> None:
        """Wait for a cluster as if it had never listed anything."""
        self.listed.pop(name, None)
        self.unvouched.discard(name)
        self.unproven.discard(name)
        self.awaited.add(name)

    def unvouch(self, name: str) -> bool:
        """Take that what a cluster lists does not tell what ran under its name before; True when that is news."""
        is_news = name not in self.unvouched
        self.unvouched.add(name)
        return is_news

    def vouch(self, names: set[str]) -> None:
        """Take that what these clusters list does tell that."""
        self.unvouched -= names
        self.awaited -= names - self.unproven

    def proves_nothing(self, name: str) -> bool:
        """Take that the list of a cluster proves nothing of what it does not name; True when that is news."""
        is_news = name not in self.unproven
        self.unproven.add(name)
        return is_news

    def proves(self, name: str) -> bool:
        """Take that it does prove that, or that nobody waits for another; True when it did not before."""
        was_unproven = name in self.unproven
        self.unproven.discard(name)
        return was_unproven

    # --- what clusters list -------------------------------------------------------------------------------------

    def take_list(self, inventory: PlacementsInventoried, *, hold: bool) -> None:
        """Take that a cluster has listed what it has. `hold`: nothing is concluded from it now."""
        self.listed[inventory.cluster] = len(inventory.entries)
        if hold:
            self.held[inventory.cluster] = inventory

    def session_over(self, cluster: str) -> None:
        """Take that what a cluster has listed in a session counts no more."""
        self.held.pop(cluster, None)

    def take_up_held(self) -> list[str]:
        """Have all that is held compared; return of which clusters that is."""
        clusters = sorted(self.held)
        self.again += [self.held.pop(cluster) for cluster in clusters]
        return clusters

    def forget_lists(self, cluster: str) -> bool:
        """Forget what a cluster has listed; True when some of that was unexplained."""
        self.listed.pop(cluster, None)
        self.idle.pop(cluster, None)
        return bool(self.unexplained.pop(cluster, None))

    def leave_alone(self, cluster: str, key: PlacementKey, namespace: str) -> int:
        """Take that nothing explains a placement; return how many there are of its cluster now, 0 for no news."""
        mine = self.unexplained.setdefault(cluster, {})
        if key in mine or len(mine) >= UNEXPLAINED_MAX:
            return 0
        mine[key] = namespace
        return len(mine)

    def idles(self, cluster: str, key: PlacementKey) -> None:
        """Take that nothing runs of a placement that nothing explains."""
        self.idle.setdefault(cluster, set()).add(key)

    def is_over(self, cluster: str, key: PlacementKey) -> bool:
        """Take that a placement has ended; True when nothing explained it."""
        return self.unexplained.get(cluster, {}).pop(key, None) is not None

    # --- who is asked -------------------------------------------------------------------------------------------

    def take_again(self) -> list[PlacementsInventoried]:
        """Return the inventories that are to be compared now, once."""
        again, self.again = self.again, []
        return again

    def ask_all(self) -> None:
        """Wait for each cluster that the record knows, and each whose object was deleted since a finding stands."""
        if self.finding is not None:
            for name in sorted(self.clusters):
                self.asked.add(self.clusters[name])
        self.awaited |= {name for name, found in self.clusters.items() if self._is_awaited(found)}
        self.awaited |= {name for name in self.asked.by_name if self.is_gone(name) and not self.is_fenced_gone(name)}

    def _is_awaited(self, found: WorkerCluster) -> bool:
        if self.is_gone(found.metadata.name):
            return not self.is_fenced_gone(found.metadata.name)
        if self.finding is not None:  # revoked or not: it may have been taken in again since, in what is lost
            return found.status.session > 0 and not is_fenced(found, self.finding)
        return found.status.connected and not found.spec.revoked

    def is_said(self, found: WorkerCluster) -> bool:
        """Say whether a person has said of a cluster what ends the wait for it."""
        if self.is_gone(found.metadata.name):
            return self.is_fenced_gone(found.metadata.name)
        return is_fenced(found, self.finding) if self.finding is not None else found.spec.revoked

    def is_gone(self, name: str) -> bool:
        """Say whether a name is asked about whose WorkerCluster is no more, or another one by now."""
        return self.finding is not None and self.asked.is_gone(name, self.clusters.get(name))

    def is_fenced_gone(self, name: str) -> bool:
        """Say whether a person has said that nothing runs any more on a cluster whose WorkerCluster is no more."""
        return self.finding is not None and self.without.since == self.finding.since and name in self.without.names

    @property
    def stage(self) -> RecoveryStage:
        """How far it has come."""
        if self.finding is None:
            return RecoveryStage.DONE
        if self.word is None or self.word.since != self.finding.since:
            return RecoveryStage.HALTED
        return RecoveryStage.RAISING if self.raising else RecoveryStage.WAITING
