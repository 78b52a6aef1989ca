"""The store on its own: history, pages, names, determinism. What a real server shares is in tests/contract."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.values import resources as known
from gatelift_sandbox.embedded import watches
from gatelift_sandbox.embedded.drafts import Deletion
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_sandbox.embedded.patching import MERGE_PATCH
from gatelift_sandbox.embedded.seeding import RandomIdentities
from gatelift_sandbox.embedded.selection import ListSelection, parse_labels
from gatelift_sandbox.embedded.store import EVERYTHING, Store
from gatelift_sandbox.embedded.watches import ChangeType
from support.servers.embedded_rig import START, Rig, pod

CONFIG = known.CONFIG_MAP


@pytest.fixture
def rig() -> Rig:
    return Rig()


def config(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def names(events: list[watches.WatchEvent]) -> list[tuple[ChangeType, str]]:
    return [(event.happened, event.stored.name) for event in events]


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, second = (Rig(number=7) for _ in range(2))
    for rig in (first, second):
        rig.create(known.POD, pod("a"))
        rig.create(known.POD, {"metadata": {"generateName": "b-"}, "spec": pod("")["spec"]})
    kind = first.store.kinds.of(known.POD)
    assert [s.raw for s in first.store.list(kind).items] == [s.raw for s in second.store.list(kind).items]


def test_a_watch_from_a_forgotten_version_is_expired(rig: Rig) -> None:
    kind = rig.store.kinds.of(CONFIG)
    start = rig.store.version
    rig.create(CONFIG, config("a"))
    rig.store.compact(kind)
    with pytest.raises(RequestRefusedError) as refused:
        rig.store.watch(kind, EVERYTHING, start)
    assert (refused.value.code, refused.value.reason) == (410, "Expired")
    assert refused.value.message == f"too old resource version: {start} ({rig.store.version})"
    assert rig.store.watch(kind, EVERYTHING, rig.store.version).take() == []


def test_the_history_is_bounded(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = rig.store.kinds.of(known.LEASE)
    history = watches.ChangeLog(limit=3)
    monkeypatch.setattr(rig.store._shelf(kind.storage), "history", history)
    versions = []
    for index in range(5):
        rig.create(known.LEASE, {"metadata": {"name": f"l{index}"}})
        versions.append(rig.store.version)
    assert history.floor == versions[1]
    with pytest.raises(RequestRefusedError):
        rig.store.watch(kind, EVERYTHING, versions[0])
    later = rig.store.watch(kind, EVERYTHING, versions[1]).take()
    assert names(later) == [(ChangeType.ADDED, f"l{index}") for index in (2, 3, 4)]


def test_a_page_of_a_forgotten_version_is_expired(rig: Rig) -> None:
    kind = rig.store.kinds.of(known.SECRET)
    for name in "abc":
        rig.create(known.SECRET, {"metadata": {"name": name}})
    first = rig.store.list(kind, limit=1)
    rig.create(known.SECRET, {"metadata": {"name": "d"}})
    rig.store.compact(kind)
    with pytest.raises(RequestRefusedError) as refused:
        rig.store.list(kind, limit=1, token=first.next)
    assert refused.value.code == 410


def test_a_token_that_nobody_gave_out_is_a_bad_request(rig: Rig) -> None:
    with pytest.raises(RequestRefusedError) as refused:
        rig.store.list(rig.store.kinds.of(CONFIG), token="nonsense!")
    assert refused.value.code == 400


def test_pages_keep_to_their_namespace(rig: Rig) -> None:
    rig.create(known.NAMESPACE, {"metadata": {"name": "default-b"}})
    rig.create(known.SECRET, {"metadata": {"name": "a"}})
    rig.create(known.SECRET, {"metadata": {"name": "z"}})
    rig.create(known.SECRET, {"metadata": {"name": "b"}}, "default-b")
    kind, chosen = rig.store.kinds.of(known.SECRET), ListSelection(namespace="default")
    first = rig.store.list(kind, chosen, limit=1)
    second = rig.store.list(kind, chosen, limit=1, token=first.next)
    assert [[s.name for s in page.items] for page in (first, second)] == [["a"], ["z"]]
    assert second.next == ""


def test_a_watch_that_nobody_reads_is_ended(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "PENDING_MAX", 2)
    kind = rig.store.kinds.of(known.LEASE)
    watch = rig.store.watch(kind, EVERYTHING, rig.store.version)
    for name in "abc":
        rig.create(known.LEASE, {"metadata": {"name": name}})
    assert watch.closed
    assert watch.take() == []


def test_a_dropped_watch_is_closed_and_the_next_one_goes_on_where_it_was(rig: Rig) -> None:
    kind = rig.store.kinds.of(CONFIG)
    watch = rig.store.watch(kind, EVERYTHING, rig.store.version)
    seen = rig.store.version
    assert rig.store.drop_watches(kind) == 1
    assert watch.closed
    rig.create(CONFIG, config("a"))
    assert watch.take() == []
    assert names(rig.store.watch(kind, EVERYTHING, seen).take()) == [(ChangeType.ADDED, "a")]


def test_a_watch_wakes_its_reader_at_each_event_it_selects(rig: Rig) -> None:
    kind, woken = rig.store.kinds.of(CONFIG), list[int]()
    chosen = ListSelection(labels=parse_labels("a=b"))
    watch = rig.store.watch(kind, chosen, rig.store.version, lambda: woken.append(1))
    rig.create(CONFIG, config("other"))
    assert woken == []
    rig.create(CONFIG, {"metadata": {"name": "mine", "labels": {"a": "b"}}})
    assert woken == [1]
    rig.store.unwatch(kind, watch)
    rig.delete(CONFIG, "mine")
    assert names(watch.take()) == [(ChangeType.ADDED, "mine")]


class Stuck(RandomIdentities):
    """Has one suffix only."""

    def suffix(self) -> str:
        return "aaaaa"


def test_a_generated_name_that_is_always_taken_already_exists() -> None:
    store = Store(Stuck(1))
    kind = store.kinds.of(known.NAMESPACE)
    store.create(kind, "", {"metadata": {"generateName": "n-"}}, START)
    with pytest.raises(RequestRefusedError) as refused:
        store.create(kind, "", {"metadata": {"generateName": "n-"}}, START)
    assert refused.value.reason == "AlreadyExists"


def test_a_reader_cannot_change_what_is_stored(rig: Rig) -> None:
    rig.create(CONFIG, config("a", k="v"))
    rig.get(CONFIG, "a")["data"]["k"] = "changed"
    assert rig.get(CONFIG, "a")["data"] == {"k": "v"}


def test_a_draft_that_was_overtaken_conflicts(rig: Rig) -> None:
    kind = rig.store.kinds.of(CONFIG)
    rig.create(CONFIG, config("a"))
    draft = rig.store.draft_update(kind, "default", "a", lambda found: {**found, "data": {"k": "1"}}, patch=True)
    assert draft.unconditional
    rig.patch(CONFIG, "a", {"data": {"k": "2"}})
    with pytest.raises(RequestRefusedError) as refused:
        rig.store.commit(draft, rig.now)
    assert refused.value.reason == "Conflict"
    assert rig.get(CONFIG, "a")["data"] == {"k": "2"}


def test_an_object_that_is_too_large_is_refused(rig: Rig) -> None:
    with pytest.raises(RequestRefusedError) as refused:
        rig.create(CONFIG, config("a", k="x" * 4 * 1024 * 1024))
    assert refused.value.code == 413


def test_a_dry_run_raises_no_version_and_tells_nobody(rig: Rig) -> None:
    kind = rig.store.kinds.of(CONFIG)
    heard: list[object] = []
    rig.store.listen(lambda _storage, change: heard.append(change))
    before = rig.store.version
    rig.store.create(kind, "default", config("a"), rig.now, dry_run=True)
    rig.create(CONFIG, config("b"))
    rig.store.delete(kind, "default", "b", Deletion(), rig.now, dry_run=True)
    assert rig.store.version == before + 1
    assert len(heard) == 1
    assert rig.get(CONFIG, "b")


def test_server_side_apply_is_refused_with_the_way_out(rig: Rig) -> None:
    rig.create(CONFIG, config("a"))
    kind = rig.store.kinds.of(CONFIG)
    with pytest.raises(RequestRefusedError) as refused:
        rig.store.patch(kind, "default", "a", b"{}", "application/apply-patch+yaml", rig.now)
    assert refused.value.code == 415
    assert "use `kubectl apply` without --server-side" in refused.value.message


def test_a_patch_that_is_no_json_is_a_bad_request(rig: Rig) -> None:
    rig.create(CONFIG, config("a"))
    kind = rig.store.kinds.of(CONFIG)
    with pytest.raises(RequestRefusedError) as refused:
        rig.store.patch(kind, "default", "a", b"{", MERGE_PATCH, rig.now)
    assert refused.value.code == 400
