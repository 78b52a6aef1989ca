"""What a cluster has before anybody does anything, and where its UIDs come from. Pure, given a seed."""

from __future__ import annotations

import random
import uuid

from gatelift_kube.values import resources as known
from gatelift_sandbox.embedded import builtin, rbac
from gatelift_sandbox.embedded.rules.cluster import SYSTEM_CLASSES
from gatelift_sandbox.embedded.store import Store

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""As Kubernetes: no vowels, so that no suffix is a word."""
SUFFIX_LENGTH = 5


class RandomIdentities:
    """UIDs and suffixes of a seeded source, or of chance where no seed is given."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311 (names, not secrets)

    def uid(self) -> str:
        """Return a UUID of version 4."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Return five letters."""
        return "".join(self._random.choices(_LETTERS, k=SUFFIX_LENGTH))


def seed(store: Store, now: float) -> None:
    """Create what every cluster has from its first moment: namespaces, RBAC roles, priority classes."""
    for name in NAMESPACES:
        store.create(store.kinds.of(known.NAMESPACE), "", {"metadata": {"name": name}}, now)
    roles = {"clusterroles": builtin.CLUSTER_ROLE, "clusterrolebindings": builtin.CLUSTER_ROLE_BINDING}
    for plural, document in rbac.bootstrap():
        store.create(store.kinds.of(roles[plural]), "", document, now)
    for name, value in SYSTEM_CLASSES.items():
        document = {"metadata": {"name": name}, "value": value}
        store.create(store.kinds.of(known.PRIORITY_CLASS), "", document, now)
