"""What is true in a simulated world, read from the stores and from what containers run: the outside check of design 7.

It believes no core, and whose a run is it has from `attribution`, never from a label of later. After every write
and every start or stop of a container: no two runs of one user's object, whatever their Workloads are; what is lifted
stands in the record with its epoch and cluster, and is charged; epochs only grow; each epoch is charged and released
once; what is finished stays so; no queue admits more than it has. What a person does by hand around everything is no
broken promise by itself; two runs of one object always are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from gatelift_sandbox.embedded.watches import StoreChange
from gatelift_sandbox.records import RunRecord
from support.sim.attribution import LOCAL, Attribution, Belongs, Doc, Work, controlled, is_managed, joined_in
from support.sim.charges import Charges
from support.sim.crowds import Crowds
from support.sim.followed import Cluster
from support.sim.hands import Hands
from support.sim.objects import (
    NOTHING,
    Run,
    TruthError,
    admitted,
    epoch_of,
    finalizers,
    holds,
    is_patient,
    is_released,
    job_is_free,
    milli,
    place_of,
    pod_is_free,
)


class Truth:
    """Follows all stores and kubelets."""

    def __init__(self) -> None:
        self.workloads: dict[str, Doc] = {}
        """Workloads that exist, by UID."""
        self._held: dict[str, tuple[str, int, int]] = {}  # queue, milli-CPU and epoch of grants that go on
        self.runs: set[tuple[str, int, str]] = set()
        """All (workload, epoch, cluster) that were ever let go."""
        self.checks = 0
        self.whose = Attribution()
        self.known_as: dict[str, str] = {}
        """Under which name the record knows a cluster that has another one."""
        self._restoring = False
        self._users: set[str] = set()
        self._unowned: dict[str, Belongs] = {}  # containers at home of what has no Workload yet
        self._lifted: dict[Work, dict[str, Belongs]] = {}
        self._running: dict[Work, dict[str, Belongs]] = {}
        self.hands = Hands()
        self._crowds = Crowds()
        self._by_hand: set[str] = set()  # roots that ran when a cluster was put back to an earlier time
        self._stopping: set[str] = set()  # pods of those, once they are held back again: they have their time to stop
        self._brought_back: set[str] = set()  # the same of roots that their record had yet to let go of then
        self._revived: set[str] = set()  # roots that a backup of their own cluster brought back, while they run so
        self._renumbered: set[str] = set()  # Workloads whose epoch a person wrote: what runs keeps its own
        self._recovered_to: set[int] = set()
        self._lost: set[tuple[str, int, str]] = set()  # (workload, epoch, cluster) that only a lost history has granted
        self._taken: set[str] = set()  # Workloads that a person took the reservation off while they ran
        self._stripped: set[str] = set()  # Workloads that a person took the finalizers off
        self._short: set[str] = set()  # roots of which a person took pods off: they are made anew, beside what runs
        self._charges = Charges()

    def follow(self, cluster: Cluster, *, management: bool) -> None:
        """Look at each write of a cluster from now on."""

        def changed(storage: tuple[str, str], change: StoreChange) -> None:
            if cluster.ended:
                return
            self._restoring = cluster.restoring  # half of a backup says nothing; `restored` checks all
            if management and storage == (WORKLOAD.group, WORKLOAD.plural):
                self._workload(change, by_hand=cluster.by_hand, late=cluster.late)
            elif storage in ((POD.group, POD.plural), (JOB.group, JOB.plural)):
                kind = POD if storage == (POD.group, POD.plural) else JOB
                where = LOCAL if management else cluster.name
                if cluster.restoring and not change.removed and not management:  # at home its record comes back, too
                    self._revive(where, change.after.uid)
                by_hand = cluster.by_hand and not cluster.restoring  # what a backup lets go its record may know
                self._object(where, kind.kind, change, by_hand=by_hand)

        cluster.store.listen(changed)

    def noted(self, cluster: str, record: RunRecord) -> None:
        """Take from a kubelet that containers have started or stopped."""
        name = f"container {cluster}/{record.pod_uid}"
        belongs = self.whose.of(cluster, record.pod_uid)
        if belongs is None:
            return
        running = self._running.setdefault(belongs.work, {})
        if record.stopped is not None:
            self._crowds.stopped(belongs.root, record.pod_uid)
            running.pop(name, None)
            self._unowned.pop(name, None)
            return
        runs_as = self._lifted.get(belongs.work, {}).get(f"{cluster}/Pod/{record.pod_uid}", belongs)
        if not runs_as.workload:
            self._unowned[name] = runs_as  # nobody's but its user's, until it has a Workload
            return
        if belongs.root in self._revived:
            return
        running[name] = runs_as
        self._crowds.started(belongs.root, record.pod_uid)
        self._check(belongs.work)

    # --- the records --------------------------------------------------------------------------------------------

    def record(self, chain: str) -> Doc | None:
        """Return the Workload by which a chain is charged and placed; of what is not elastic its only one."""
        return self.workloads.get(self.whose.record_of(chain))

    def _workload(self, change: StoreChange, *, by_hand: bool, late: bool = False) -> None:
        stored = change.after
        uid, chain = stored.uid, self.whose.chain_of(stored.uid)
        if change.removed:
            last = self.workloads.pop(uid, None)
            self._held.pop(uid, None)
            self.whose.gone(uid)
            if last is not None and uid in self._stripped and holds(last, "QuotaReserved"):
                self._lost.add((chain, *place_of(last)))  # let go until its cluster hears of that
            record = self.record(chain)
            goes_on = record is not None and holds(record, "QuotaReserved") and not holds(record, "Finished")
            if not goes_on and self._granted_lives(uid) and not by_hand and uid not in self._stripped:
                raise TruthError(f"workload {stored.name} ({uid}) is gone while {self.live(uid)} may run")
            return
        document, before = stored.view(), self.workloads.get(uid)
        self.workloads[uid] = document
        held = self._held.pop(uid, None)
        if holds(document, "QuotaReserved") and not holds(document, "Finished"):
            granted = epoch_of(document) if held is None else held[2]
            queue = document["status"]["admission"]["clusterQueue"]
            self._held[uid] = queue, self._amount(uid, document, held), granted
        highest = self.whose.own_epoch_of(uid)
        self.whose.workload(document)
        if by_hand:
            if before is not None and len(finalizers(document)) < len(finalizers(before)):
                self._stripped.add(uid)
            if epoch_of(document) != highest:
                self._renumbered.add(self.whose.chain_of(uid))
            self._take_away(uid, before, document)
            return
        epoch = epoch_of(document)
        if epoch < highest:
            raise TruthError(f"workload {stored.name}: epoch {epoch} after {highest}")
        if before is None:
            self._own_containers(uid)
            return
        self._transition(stored.name, uid, before, document, late=late)
        owner = self.whose.owner_of(uid)
        if owner is not None:
            self._check(owner[0])

    def _amount(self, uid: str, document: Doc, held: tuple[str, int, int] | None) -> int:
        """Return what a Workload takes of its queue; of pods that a person took off, no more than it had left to it.

        Their object makes others in their place: what was reclaimed is used again, and may be others' by then.
        """
        owner, amount = self.whose.owner_of(uid), admitted(document)
        is_short = owner is not None and owner[1] in self._short
        return min(amount, held[1]) if is_short and held is not None else amount

    def _take_away(self, uid: str, before: Doc | None, after: Doc) -> None:
        """Take that a person took the reservation of what runs off its record: that may be put back, and is no second.

        Until then no record can be asked whether it is charged; the account asks who leads.
        """
        if self._restoring or before is None or not self.live(uid):
            return
        if not holds(before, "QuotaReserved") or holds(after, "QuotaReserved"):
            return
        self._taken.add(self.whose.chain_of(uid))
        self._charges.taken_away((uid, epoch_of(before)))

    def _own_containers(self, workload: str) -> None:
        """Count the containers that ran before their Workload was made."""
        owners = self.whose.owners_of(workload)
        for name, each in tuple(self._unowned.items()):
            if each.root in owners:
                del self._unowned[name]
                runs_as = replace(each, workload=self.whose.chain_of(workload), epoch=self.whose.epoch_of(workload))
                self._running.setdefault(each.work, {})[name] = runs_as

    def _revive(self, cluster: str, uid: str) -> None:
        """Take that a backup of its own cluster brings an object back: what had ended runs again for a while.

        What the record places there still, in that epoch, is that run, and is judged as any.
        """
        belongs = self.whose.of(cluster, uid)
        if belongs is None or any(each.root == belongs.root for each in self.lives(belongs.work)):
            return
        if self._grants(belongs):
            self._brought_back.add(belongs.root)  # its cluster may have said that it ended: the record may go meanwhile
        else:
            self._revived.add(belongs.root)

    def _grants(self, belongs: Belongs) -> bool:
        """Say whether the record has this run, as it is now."""
        record = self.record(belongs.workload)
        if record is None or holds(record, "Finished") or not holds(record, "QuotaReserved"):
            return False
        return place_of(record) == (belongs.epoch, self.known_as.get(belongs.cluster, belongs.cluster))

    def _granted_lives(self, uid: str) -> bool:
        """Say whether something of a Workload may run that no person let go."""
        owner = self.whose.owner_of(uid)
        lives = self.by_uid(owner[0]) if owner is not None else ()
        chain = self.whose.chain_of(uid)
        return any(each.workload == chain and not self.is_exempt(each.root, own) for own, each in lives)

    def is_exempt(self, root: str, uid: str) -> bool:
        """Say whether an object need not be charged: it runs by hand, or since records or its cluster were put back."""
        return uid in self.hands or uid in self._stopping or root in self._by_hand or root in self._brought_back

    def by_uid(self, work: Work) -> Iterator[tuple[str, Belongs]]:
        """Go through what may run of a user's object, with the UID of the pod or Job that does."""
        for known in (self._lifted, self._running):
            yield from ((key.rpartition("/")[2], each) for key, each in known.get(work, {}).items())

    def look_at_hands(self, now: float, *, able: bool, unheard: Callable[[str], int]) -> None:
        """Raise TruthError where what a person let go is not put back in time; `able`: somebody leads who could."""
        if self.hands:
            running = {own for work in {*self._lifted, *self._running} for own, _ in self.by_uid(work)}
            self.hands.look(now, able=able, runs=running.__contains__, unheard=unheard)

    def _transition(self, name: str, uid: str, before: Doc, after: Doc, *, late: bool) -> None:
        epoch = epoch_of(after)
        had, has = holds(before, "QuotaReserved"), holds(after, "QuotaReserved")
        if has and after.get("status", {}).get("clusterName") and not (had and before["status"].get("clusterName")):
            self._lost.discard(
                (self.whose.chain_of(uid), *place_of(after))
            )  # granted anew; a raised number grants nothing
        if has and not had:
            self._charges.charged(name, (uid, epoch), after, late=late)
        if had and not has:
            self._charges.released(name, (uid, epoch), before, late=late)
        if holds(before, "Finished") and not holds(after, "Finished"):
            raise TruthError(f"workload {name}: finished, and then not")
        if holds(after, "Finished") and not holds(before, "Finished"):
            self._check_ended(name, uid)
        if epoch > epoch_of(before) and holds(before, "QuotaReserved"):
            if epoch not in self._recovered_to:
                raise TruthError(f"workload {name}: epoch raised to {epoch} while it is charged")
            self._renumbered.add(self.whose.chain_of(uid))

    def _check_ended(self, name: str, workload: str) -> None:
        """Check that no containers run of what is said to have finished just now, but for those of people's hands."""
        owner, chain = self.whose.owner_of(workload), self.whose.chain_of(workload)
        if self.whose.record_of(chain) != workload:
            return  # a past slice: what runs is charged by the record
        running = self._running.get(owner[0], {}) if owner is not None else {}
        for key, each in running.items():
            if each.workload == chain and not self.is_exempt(each.root, key.rpartition("/")[2]):
                raise TruthError(f"workload {name} is finished while containers of {key} run")

    # --- what may run -------------------------------------------------------------------------------------------

    def _object(self, cluster: str, kind: str, change: StoreChange, *, by_hand: bool) -> None:
        document = change.after.view()
        meta = document["metadata"]
        key = f"{cluster}/{kind}/{meta['uid']}"
        if cluster == LOCAL:
            here = not change.removed and not meta.get("deletionTimestamp")
            (self._users.add if here else self._users.discard)(meta["uid"])
        belongs = self.whose.seen(cluster, kind, document)
        if belongs is None:
            return
        if kind == JOB.kind:
            self._crowds.job(meta["uid"], document["spec"].get("parallelism", 1), patient=is_patient(document))
        else:
            self._pod(meta, belongs.root, removed=change.removed, by_hand=by_hand)
        may_run = pod_is_free(document) if kind == POD.kind else job_is_free(document)
        free = not change.removed and may_run
        known = self._lifted.setdefault(belongs.work, {})
        if cluster == LOCAL:
            user_lets_go = by_hand and key not in known and kind == JOB.kind and is_managed(meta)
            self._take_hands(meta, belongs, free=free, by_hand=user_lets_go)
        if cluster == LOCAL and not self.whose.workload_of(belongs.root):
            self._check_unowned(meta, belongs, free=free)
            return
        if not free:
            if meta["uid"] == belongs.root:
                self._brought_back.discard(belongs.root)
            if kind == POD.kind and meta["uid"] == belongs.root:
                self._revived.discard(belongs.root)  # it is held back, or over: who lets it go now has a record for it
            known.pop(key, None)
            if meta["uid"] == belongs.root and not by_hand and belongs.root in self._by_hand:
                self._by_hand.discard(belongs.root)  # it was stopped: who lets it go once more is asked again
                self._stopping.update(own for own, each in self.by_uid(belongs.work) if each.root == belongs.root)
        elif key not in known and belongs.root not in self._revived:
            if cluster != LOCAL:
                known[key] = belongs
                self._check_overlap(belongs.work)  # it is said first: graver than that no record has it
            known[key] = self._let_go(key, meta, belongs)
            self._check(belongs.work)

    def _pod(self, meta: Doc, root: str, *, removed: bool, by_hand: bool) -> None:
        stops = bool(meta.get("deletionTimestamp")) and not self._crowds.waits(root)
        taken_off = controlled(meta) != root
        if taken_off and by_hand:
            self._short.add(root)
        self._crowds.pod(meta["uid"], going=removed or stops or taken_off)

    def _take_hands(self, meta: Doc, belongs: Belongs, *, free: bool, by_hand: bool) -> None:
        """Follow the Jobs that people let go at home; what is nobody's but theirs runs as they like."""
        if meta["uid"] != belongs.root and free:
            self.hands.made(belongs.root, meta["uid"])
            if controlled(meta) != belongs.root:
                self.hands.taken_off(meta["uid"])
        elif meta["uid"] != belongs.root:
            self.hands.gone(meta["uid"])
        elif not free:
            self.hands.put_back(belongs.root)
        elif by_hand:
            self.hands.let_go(belongs.root, str(belongs.work))
        else:
            self.hands.seen(belongs.root, managed=is_managed(meta))

    def _let_go(self, key: str, meta: Doc, belongs: Belongs) -> Belongs:
        """Return what an object runs as that was let go just now, checked against the record."""
        unowned = not belongs.workload and meta["uid"] != belongs.root  # a pod that was there before the Workload was
        if belongs.cluster == LOCAL and (meta["uid"] == belongs.root or unowned):
            workload = self.whose.workload_of(belongs.root)
            said = joined_in(belongs, meta) if workload in self._renumbered else None
            epoch = self.whose.epoch_of(workload) if said is None else said
            belongs = Belongs(belongs.work, belongs.user, LOCAL, belongs.root, workload, epoch)
        above = self._lifted.get(belongs.work, {}).get(f"{LOCAL}/{JOB.kind}/{belongs.root}")
        if belongs.cluster == LOCAL and above is not None and meta["uid"] != belongs.root:
            belongs = above  # the Job's run goes on in the epoch in which it was let go, whatever somebody writes since
        self.runs.add((belongs.workload, belongs.epoch, belongs.cluster))
        self._check_record(key, meta, belongs, unowned=unowned)
        return belongs

    def _check_record(self, key: str, meta: Doc, belongs: Belongs, *, unowned: bool) -> None:
        """Check that what was let go just now is what the record says, unless nobody has to grant it."""
        if self._restoring or self.is_exempt(belongs.root, meta["uid"]) or unowned:
            return
        if self.is_unrecorded(belongs):  # told before its record was put back
            self._by_hand.add(belongs.root)
            return
        record = self.record(belongs.workload)
        if record is None:
            raise TruthError(f"{key} ({meta['name']}) is let go, and no workload {belongs.workload} is there")
        stands = place_of(record)
        runs_as = belongs.epoch, self.known_as.get(belongs.cluster, belongs.cluster)
        if belongs.workload in self._renumbered:
            stands = belongs.epoch, stands[1]
        if stands != runs_as or not holds(record, "QuotaReserved"):
            raise TruthError(
                f"{key} ({meta['name']}) is let go with epoch {belongs.epoch} on {belongs.cluster}; the record says "
                f"{stands}, reserved {holds(record, 'QuotaReserved')}"
            )

    def _check_unowned(self, meta: Doc, belongs: Belongs, *, free: bool) -> None:
        """Check that nothing of a queue is let go at home before it has a Workload of its own."""
        if is_managed(meta) and free and not self.is_exempt(belongs.root, meta["uid"]):
            raise TruthError(f"{meta['name']} ({meta['uid']}) is let go at home, and no workload is its own")

    def destroyed(self, cluster: str) -> None:
        """Take that nothing is left of a cluster: all that ran there has ended."""
        for known in (*self._lifted.values(), *self._running.values()):
            for key in [key for key, each in known.items() if each.cluster == cluster]:
                del known[key]

    def granted(self) -> set[tuple[str, int, str]]:
        """Return (workload, epoch, cluster) of all that is reserved and placed, as the records are now."""
        placed = (each for each in self.workloads.items() if holds(each[1], "QuotaReserved"))
        return {
            (self.whose.chain_of(uid), *place_of(each)) for uid, each in placed if each["status"].get("clusterName")
        }

    def is_unrecorded(self, belongs: Belongs) -> bool:
        """Say whether a run was granted in a history that a restore has lost, or that a backup has brought back."""
        return (
            belongs.root in self._revived
            or (belongs.workload, belongs.epoch, self.known_as.get(belongs.cluster, belongs.cluster)) in self._lost
        )

    def is_brought_back(self, belongs: Belongs) -> bool:
        """Say whether a backup of its cluster runs it again, which that cluster may have said to be over."""
        return belongs.root in self._brought_back

    def restored(self, granted: set[tuple[str, int, str]] | None = None) -> None:
        """Take that a cluster was put back to an earlier time; `granted`: what was, where it is the management's.

        What its records have said since was never said; what was granted since runs on all the same, or will. A worker
        has no records: all that runs elsewhere, or still, is judged as before.
        """
        self._restoring = False
        self._crowds.restored()
        if granted is None:
            return
        self._lost = (self._lost | granted) - self.granted()
        self._charges.clear()
        for known in (*self._lifted.values(), *self._running.values()):
            self._by_hand.update(each.root for each in known.values() if not self._grants(each))
        self._run_as_recorded()

    def _run_as_recorded(self) -> None:
        """Take what runs at home as runs of the Workloads that came back with it, and check everything."""
        for work, running in self._running.items():
            there = {each.root for each in self._lifted.get(work, {}).values()}
            for key, each in list(running.items()):
                if each.cluster == LOCAL and each.root not in there:
                    del running[key]  # its object is gone with the backup, and its kubelet ends it by itself
        for known in (*self._lifted.values(), *self._running.values()):
            for key, each in known.items():
                if each.cluster == LOCAL:
                    workload = self.whose.workload_of(each.root)
                    known[key] = replace(each, workload=workload, epoch=self.whose.epoch_of(workload))
        for work in sorted({*self._lifted, *self._running}):
            self._check(work)

    def recovered(self, epochs: int) -> None:
        """Take that a person has said that a recovery raises all epochs to this one, of what is charged, too."""
        self._recovered_to.add(epochs)

    def lives(self, work: Work) -> list[Belongs]:
        """Return all that may run of a user's object at this moment."""
        return [*self._lifted.get(work, {}).values(), *self._running.get(work, {}).values()]

    def containers(self, work: Work) -> int:
        """Return how many pods of a user's object have containers that run."""
        return len(self._running.get(work, {}))

    def live(self, uid: str) -> set[Run]:
        """Return which (epoch, cluster) of a workload may run at this moment."""
        owner = self.whose.owner_of(uid)
        found = self.lives(owner[0]) if owner is not None else []
        chain = self.whose.chain_of(uid)
        return {(each.epoch, each.cluster) for each in found if each.workload == chain}

    def all_live(self) -> dict[str, set[Run]]:
        """Return the same of all workloads that have any."""
        found: dict[str, set[Run]] = {}
        for work in {*self._lifted, *self._running}:
            for each in self.lives(work):
                found.setdefault(each.workload, set()).add((each.epoch, each.cluster))
        return dict(sorted(found.items()))

    def _check(self, work: Work) -> None:
        self.checks += 1
        if self._restoring:
            return
        self._check_overlap(work)
        for uid, each in self.by_uid(work):
            record = self.record(each.workload)
            if record is None or holds(record, "QuotaReserved"):
                self._taken.discard(each.workload)
            elif each.workload not in self._taken and not self.is_exempt(each.root, uid):
                run = each.epoch, each.cluster
                raise TruthError(f"workload {record['metadata']['name']}: {run} may run and is not charged")

    def _check_overlap(self, work: Work) -> None:
        if self._restoring:
            return
        lives = self.lives(work)
        granted = {each for uid, each in self.by_uid(work) if uid not in self.hands}
        if len({(each.cluster, each.whole) for each in lives}) > 1 or len({each.of_all for each in granted}) > 1:
            told = sorted({f"{each.root} of workload {each.workload}, {(each.epoch, each.cluster)}" for each in lives})
            raise TruthError(f"{work} may run more than once: {told}")

    def used(self, booked: Mapping[tuple[str, int], int] = NOTHING) -> Counter[str]:
        """Return the milli-CPU that each queue has admitted, without what the books (`booked`) have given back."""
        used: Counter[str] = Counter()
        for uid, (queue, amount, granted) in self._held.items():
            if self.whose.record_of(self.whose.chain_of(uid)) != uid:
                continue  # its place is taken: the chain is charged once
            document, late = self.workloads[uid], self._charges.is_late(uid)
            going = document["metadata"].get("deletionTimestamp") or self.orphaned(document) or late
            if not is_released(document) and (not going or self._granted_lives(uid)):
                before = booked.get((uid, granted), amount)  # whatever somebody has written since
                used[queue] += min(amount, booked.get((uid, epoch_of(document)), before))
        return used

    def orphaned(self, workload: Doc) -> bool:
        """Say whether the user's object is being deleted or gone: its quota needs no write to be free.

        Whose it was at first sight: the garbage collector and people take owner references off.
        """
        owners = self.whose.owners_of(workload["metadata"]["uid"])
        return bool(owners) and not owners & self._users

    def check_quota(self, queues: dict[str, int], booked: Mapping[tuple[str, int], int] = NOTHING) -> None:
        """Check that no queue has admitted more than it has."""
        for name, amount in self.used(booked).items():
            if amount > queues.get(name, 0):
                raise TruthError(f"queue {name} has admitted {amount} of {queues.get(name, 0)} milli-CPU")


__all__ = ["Cluster", "Truth", "TruthError", "epoch_of", "holds", "job_is_free", "milli", "place_of", "pod_is_free"]
