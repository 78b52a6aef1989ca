"""A store is put back to a copy, as etcd is restored from a backup."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.values.resources import CONFIG_MAP, NAMESPACE
from gatelift_sandbox.embedded.drafts import Deletion
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_sandbox.embedded.kinds import StorageKey
from gatelift_sandbox.embedded.store import EVERYTHING, Store
from gatelift_sandbox.embedded.watches import StoreChange
from support.sim.cluster import Names

KEY: StorageKey = ("", "configmaps")


def a_store() -> Store:
    store = Store(Names("c"))
    namespace: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    store.create(store.kinds.of(NAMESPACE), "", namespace, 0.0)
    return store


def made(store: Store, name: str) -> None:
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    store.create(store.kinds.of(CONFIG_MAP), "n", document, 0.0)


def test_what_was_made_since_is_gone_and_versions_go_on_from_the_copy() -> None:
    store = a_store()
    made(store, "old")
    copy = store.copy()
    made(store, "new")
    store.restore(copy)
    assert [each.name for each in store.all(KEY)] == ["old"]
    assert store.version == copy.version
    made(store, "next")
    assert store.version == copy.version + 1


def test_listeners_hear_of_what_goes_and_of_what_comes_back() -> None:
    store = a_store()
    made(store, "old")
    copy = store.copy()
    store.patch(store.kinds.of(CONFIG_MAP), "n", "old", b'{"data":{"a":"b"}}', "application/merge-patch+json", 0.0)
    made(store, "new")
    heard: list[tuple[str, bool]] = []

    def listen(_key: StorageKey, change: StoreChange) -> None:
        heard.append((change.after.name, change.removed))

    store.listen(listen)
    store.restore(copy)
    assert heard == [("new", True), ("old", False)]


def test_an_object_that_was_made_again_under_its_name_goes_and_the_one_before_comes_back() -> None:
    store = a_store()
    made(store, "one")
    copy = store.copy()
    (first,) = store.all(KEY)
    store.delete(store.kinds.of(CONFIG_MAP), "n", "one", Deletion(), 0.0)
    made(store, "one")
    (second,) = store.all(KEY)
    heard: list[tuple[str, bool]] = []
    store.listen(lambda _key, change: heard.append((change.after.uid, change.removed)))
    store.restore(copy)
    assert heard == [(second.uid, True), (first.uid, False)]


def test_watches_end_and_no_history_is_known() -> None:
    store = a_store()
    made(store, "old")
    copy = store.copy()
    kind = store.kinds.of(CONFIG_MAP)
    watch = store.watch(kind, EVERYTHING, store.version)
    made(store, "new")
    store.restore(copy)
    assert watch.closed
    with pytest.raises(RequestRefusedError):
        store.watch(kind, EVERYTHING, 0)
