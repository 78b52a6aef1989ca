"""Where the certificate material of webhooks is kept: one Secret that all replicas share. Whoever writes first wins."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime

import structlog

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import AlreadyExistsError, ConflictError, NotFoundError
from gatelift_kube.objects.core import Secret
from gatelift_kube.serving import certificates
from gatelift_kube.serving.certificates import Material, MaterialError
from gatelift_kube.values.resources import SECRET, ObjectKey, ObjectRef

ROUNDS_MAX = 3
"""Another replica can come first in a create and in a patch; a third loser waits for the next check."""


class MaterialStore:
    """Reads, makes and renews the material."""

    def __init__(self, client: Client, where: ObjectKey, names: tuple[str, ...], wall: Callable[[], datetime]) -> None:
        """`where`: of the Secret. `names`: DNS names and addresses that API servers know the webhooks by."""
        self._client = client
        self._ref = ObjectRef(SECRET, where)
        self._names = names
        self._wall = wall
        self._log = structlog.get_logger("gatelift.webhooks").bind(secret=where.name)

    async def current(self) -> Material:
        """Return the material as it is kept, made or renewed if that is due. KubeError: it cannot be read or kept."""
        for _ in range(ROUNDS_MAX - 1):
            try:
                return await self._round()
            except (AlreadyExistsError, ConflictError):
                self._log.info("the other replica kept its certificate first: reading it")
        return await self._round()

    async def _round(self) -> Material:
        try:
            served = await self._client.get(self._ref)
        except NotFoundError:
            return await self._create()
        secret = served.object
        data = secret.data if isinstance(secret, Secret) else {}
        try:
            material = Material.from_data(data)
        except MaterialError as error:
            self._log.warning("the Secret of the webhooks is unusable and is made anew", problem=str(error))
            return await self._patch(secret.metadata.resource_version, certificates.make(self._names, self._wall()))
        renewed = certificates.renewed(material, self._names, self._wall())
        if renewed is None:
            return material
        self._log.info("certificate of the webhooks renewed")
        return await self._patch(secret.metadata.resource_version, renewed)

    async def _create(self) -> Material:
        made = certificates.make(self._names, self._wall())
        document = {
            "apiVersion": SECRET.api_version,
            "kind": SECRET.kind,
            "metadata": {"name": self._ref.key.name, "labels": {"app.kubernetes.io/part-of": "gatelift"}},
            "type": "kubernetes.io/tls",
            "data": made.to_data(),
        }
        await self._client.create(SECRET, self._ref.key.namespace, json.dumps(document).encode())
        return made

    async def _patch(self, version: str, material: Material) -> Material:
        body = {"metadata": {"resourceVersion": version}, "data": material.to_data()}
        await self._client.patch(self._ref, json.dumps(body).encode())
        return material
