"""What the agent keeps in ConfigMaps of its own namespace: what it must know after a restart and no object says.

Two things. *State*: the manager's origin, the last session and term (a Hello below what the manager recorded means a
restored worker), and every namespace in which objects were ever made, written before the first create there: after a
restart all of them are listed, whatever their labels say by then, so that absence from an inventory is a fact (R7). The
leader's counter of the last grant goes along, and is written once a minute at least (`count`).
*Records*: final states that the manager could not be told of within the time that a deletion may be held up, and which
objects of a placement that goes on have succeeded and are gone.

Writes are batched: one under way for each ConfigMap, records at most once a second. `local` keeps nothing.

Each write is conditional on the resourceVersion of what is known to stand there, so that none can land after a later
one. After a conflict, or where nobody can tell, it is read (by a patch that changes nothing, which is answered with the
object as it is) and merged before anything is written: of two writes conditional on one version only one lands.
"""

from __future__ import annotations

import msgspec

from gatelift_agent.core.memory import kept_state, member_ends, records
from gatelift_agent.core.memory.kept_state import KeptState
from gatelift_agent.core.memory.member_ends import MemberEnd
from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.values.asked import Asked, WritePurpose, Writes
from gatelift_kinds.registry import SERVED, Registry
from gatelift_kube.deciding.writes import ApiWrite, Create, KubeObject, Patch, WriteError
from gatelift_kube.objects.core import ConfigMap
from gatelift_kube.values.resources import CONFIG_MAP, ObjectKey, ObjectRef
from gatelift_wire.sessions.leases import UNCOUNTED, Sealed
from gatelift_wire.values import limits
from gatelift_wire.values.keys import PlacementKey

STATE_NAME = "gatelift-agent-state"
SHARD_PREFIX = "gatelift-agent-records-"
LABEL = "gatelift.dev/agent-state"
"""By this label the agent's own ConfigMaps are watched."""

SHARDS_MAX = 64
SHARD_BYTES_MAX = 700_000
"""An object may have 1 MiB in all; with 64 shards some fifteen thousand final states are kept."""

COUNT_SECONDS = 60.0
"""How old the kept counter may be: what a restart forgets of it is what a restored manager could hide."""
BATCH_SECONDS = 1.0
RETRY_SECONDS = 2.0


_READ_ANEW = frozenset({WriteError.UNKNOWN, WriteError.CONFLICT, WriteError.ALREADY_EXISTS})
"""Failures after which it may say something else than what is known: it is read before the next write."""


class _Shard:
    """One ConfigMap: what it holds, and what it should hold besides (None: removed).

    `version` is the resourceVersion with which it holds that, "" when it has to be read first.
    """

    __slots__ = ("asked", "exists", "held", "next_at", "sent", "version", "wanted")

    def __init__(self) -> None:
        self.exists = False
        self.version = ""
        self.held: dict[str, str] = {}
        self.wanted: dict[str, str | None] = {}
        self.sent: dict[str, str | None] = {}
        self.asked = 0
        self.next_at = 0.0

    @property
    def size(self) -> int:
        """Bytes of its values, wanted ones included."""
        merged = {**self.held, **self.wanted}
        return sum(len(key) + len(value) for key, value in merged.items() if value is not None)


class Keeper:
    """The agent's own ConfigMaps. `flush` returns the writes that are due; `changed` is cleared by whoever looks."""

    def __init__(self, namespace: str, kinds: Registry = SERVED, *, keeps: bool) -> None:
        self._namespace = namespace
        self._kinds = kinds
        self._keeps = keeps
        self._shards: dict[str, _Shard] = {STATE_NAME: _Shard()}
        self._places: dict[str, str] = {}
        self._members: dict[PlacementKey, set[str]] = {}
        self.state = KeptState()
        self.full = False
        self._count_at = 0.0

    # --- state --------------------------------------------------------------------------------------------------

    def remember(self, origin: str, session: int, term: int) -> None:
        """Keep who the manager is and how far session and term have come."""
        if origin != self.state.origin:  # the counter is of another Lease
            self.state = msgspec.structs.replace(self.state, counter=0, seal="")
        self._set(msgspec.structs.replace(self.state, origin=origin, session=session, term=term))

    def count(self, sealed: Sealed, now: float) -> None:
        """Keep how far the manager's record has come: with the next write that is made anyway, or once a minute."""
        if not self._keeps or sealed.counter <= self.state.counter:
            return
        state = msgspec.structs.replace(self.state, counter=sealed.counter, seal=sealed.seal.hex())
        if now >= self._count_at:
            self._count_at = now + COUNT_SECONDS
            self._set(state)
        else:
            self.state = state

    @property
    def sealed(self) -> Sealed:
        """What was kept of that; nothing of it where a person has edited it into something else."""
        try:
            kept = Sealed(self.state.counter, bytes.fromhex(self.state.seal))
        except ValueError:
            return UNCOUNTED
        fits = 0 < kept.counter <= limits.NUMBER_MAX and len(kept.seal) <= limits.SEAL_BYTES_MAX
        return kept if fits else UNCOUNTED

    def remembers(self, session: int) -> bool:
        """Say whether a restart would know of this session: that much is written."""
        if not self._keeps:
            return True
        written = self._written_state()
        return written is not None and written.session >= session

    def covers(self, namespace: str) -> bool:
        """Say whether a restart would look into this namespace: that much is written."""
        if not self._keeps:
            return True
        written = self._written_state()
        return written is not None and namespace in written.namespaces

    def cover(self, namespace: str) -> None:
        """See to it that a restart looks into this namespace."""
        if namespace not in self.state.namespaces:
            self._set(msgspec.structs.replace(self.state, namespaces=(*self.state.namespaces, namespace)))

    def uncover(self, gone: frozenset[str]) -> None:
        """Drop namespaces that do not exist any more."""
        left = tuple(name for name in self.state.namespaces if name not in gone)
        if left != self.state.namespaces:
            self._set(msgspec.structs.replace(self.state, namespaces=left))

    def _set(self, state: KeptState) -> None:
        if self._keeps and state != self.state:
            self.state = state
            self._shards[STATE_NAME].wanted["state"] = kept_state.encode(state)

    def _written_state(self) -> KeptState | None:
        return kept_state.decode(self._shards[STATE_NAME].held.get("state", ""))

    # --- records ------------------------------------------------------------------------------------------------

    def keep(self, placement: Placement) -> bool:
        """Keep a placement's final state; True once it is written."""
        name = records.data_key(placement.key)
        return self._is_written(name) or self._keep(name, records.encode(placement))

    def keep_member(self, placement: Placement, tracked: Tracked) -> bool:
        """Keep that one of several objects has succeeded; True once it is written, or where nobody can name it."""
        name = member_ends.data_key(placement.key, tracked.user_uid) if self._keeps else ""
        if not name or self._is_written(name):
            return True
        self._members.setdefault(placement.key, set()).add(name)
        return self._keep(name, member_ends.encode(placement, tracked))

    def _is_written(self, name: str) -> bool:
        place = self._places.get(name)
        return place is not None and name in self._shards[place].held

    def _keep(self, name: str, text: str) -> bool:
        """Have a record written; False, for it is not yet."""
        if name in self._places:
            return False
        for number in range(SHARDS_MAX):
            shard_name = f"{SHARD_PREFIX}{number}"
            shard = self._shards.setdefault(shard_name, _Shard())
            if shard.size + len(text) <= SHARD_BYTES_MAX:
                shard.wanted[name] = text
                self._places[name] = shard_name
                self.full = False
                return False
        self.full = True
        return False

    def forgotten(self, key: PlacementKey) -> bool:
        """Say whether no record of the placement is left, and see to it that none is."""
        names = (records.data_key(key), *self._members.get(key, ()))
        left = [name for name in names if not self._is_forgotten(name)]
        if not left:
            self._members.pop(key, None)
        return not left

    def _is_forgotten(self, name: str) -> bool:
        place = self._places.get(name)
        if place is None:
            return True
        shard = self._shards[place]
        if shard.wanted.get(name, "") is not None:
            shard.wanted[name] = None
        return False

    def recorded(self) -> list[tuple[str, str]]:
        """Return all records of whole placements, as read at the start, each with its name."""
        return [(name, text) for name, text in self._all_held() if not name.startswith(member_ends.PREFIX)]

    def members(self) -> list[MemberEnd]:
        """Return which objects are known to have succeeded, as read at the start."""
        found = []
        for name, text in self._all_held():
            end = member_ends.decode(text) if name.startswith(member_ends.PREFIX) else None
            if end is not None:
                self._members.setdefault(end.key, set()).add(name)
                found.append(end)
        return found

    def _all_held(self) -> list[tuple[str, str]]:
        shards = (shard for name, shard in self._shards.items() if name != STATE_NAME)
        return [record for shard in shards for record in shard.held.items()]

    def read_record(self, text: str) -> Placement | None:
        """Return the placement of a record, None where a person has edited it into something else."""
        return records.decode(self._kinds, text)

    # --- the ConfigMaps -----------------------------------------------------------------------------------------

    def read(self, config_map: ConfigMap) -> None:
        """Take one of the own ConfigMaps, as listed at the start."""
        name = config_map.metadata.name
        if name != STATE_NAME and not name.startswith(SHARD_PREFIX):
            return
        shard = self._shards.setdefault(name, _Shard())
        self._holds(name, shard, config_map)
        if name == STATE_NAME:
            self.state = self._written_state() or self.state

    def _holds(self, name: str, shard: _Shard, config_map: ConfigMap) -> None:
        shard.exists, shard.version = True, config_map.metadata.resource_version
        shard.held = dict(config_map.data)
        if name != STATE_NAME:
            self._places.update(dict.fromkeys(shard.held, name))

    def flush(self, writes: Writes, now: float) -> list[ApiWrite]:
        """Return the writes that are due."""
        due: list[ApiWrite] = []
        for name, shard in self._shards.items():
            if not shard.wanted or shard.asked or shard.next_at > now:
                continue
            shard.next_at = now + (0.0 if name == STATE_NAME else BATCH_SECONDS)
            purpose = WritePurpose.STATE if name == STATE_NAME else WritePurpose.RECORD
            shard.asked = writes.ask(Asked(purpose=purpose, key=None, name=name, at=now))
            due.append(self._write(shard.asked, name, shard))
        return due

    def next_deadline(self) -> float | None:
        """Return when `flush` has something to do."""
        found: float | None = None
        for shard in self._shards.values():
            if shard.wanted and not shard.asked and (found is None or shard.next_at < found):
                found = shard.next_at
        return found

    def written(self, name: str, answer: KubeObject | None) -> bool:
        """Take the success of a write; True when it says that others have written more namespaces than were known."""
        shard = self._shards[name]
        sent, shard.asked, shard.sent = shard.sent, 0, {}
        if not isinstance(answer, ConfigMap):
            shard.exists, shard.version, shard.wanted = True, "", {**sent, **shard.wanted}
            return False
        self._holds(name, shard, answer)
        for key, value in sent.items():
            if value is None and key not in shard.wanted:
                self._places.pop(key, None)
        return name == STATE_NAME and not sent and self._merge(shard)

    def _merge(self, shard: _Shard) -> bool:
        """Take into the state what is found there; what that does not say yet is written."""
        found, before = self._written_state() or KeptState(), self.state
        self.state = kept_state.merge(before, found)
        shard.wanted.pop("state", None)
        if self.state != found:
            shard.wanted["state"] = kept_state.encode(self.state)
        return self.state.namespaces != before.namespaces

    def failed(self, name: str, error: WriteError, now: float) -> None:
        """Take the failure of a write: what it would have said is wanted again."""
        shard = self._shards[name]
        shard.asked = 0
        shard.wanted = {**shard.sent, **shard.wanted}
        shard.sent = {}
        if error in _READ_ANEW:
            shard.exists, shard.version = True, ""
        elif error is WriteError.NOT_FOUND:
            shard.exists, shard.version, shard.held = False, "", {}
            shard.wanted = {key: value for key, value in shard.wanted.items() if value is not None}
            self._places = {key: place for key, place in self._places.items() if place != name}
            self._places.update(dict.fromkeys(shard.wanted, name) if name != STATE_NAME else {})
        shard.next_at = now + RETRY_SECONDS

    def _write(self, write_id: int, name: str, shard: _Shard) -> ApiWrite:
        ref = ObjectRef(CONFIG_MAP, ObjectKey(self._namespace, name))
        if shard.exists and not shard.version:
            body = msgspec.json.encode({"metadata": {"labels": {LABEL: "true"}}})
            return Patch(write_id=write_id, ref=ref, body=body)
        shard.sent, shard.wanted = shard.wanted, {}
        if shard.exists:
            guarded = {"metadata": {"resourceVersion": shard.version}, "data": shard.sent}
            return Patch(write_id=write_id, ref=ref, body=msgspec.json.encode(guarded))
        document = {
            "apiVersion": CONFIG_MAP.api_version,
            "kind": CONFIG_MAP.kind,
            "metadata": {"name": name, "namespace": self._namespace, "labels": {LABEL: "true"}},
            "data": {key: value for key, value in shard.sent.items() if value is not None},
        }
        return Create(write_id=write_id, ref=ref, body=msgspec.json.encode(document))
