"""Keeps the two webhook configurations as they should be: trust bundle, address, namespaces. One patch at most each."""

from __future__ import annotations

import json
from typing import Any

import structlog

from gatelift.webhooks import configuration
from gatelift.webhooks.configuration import MUTATING, VALIDATING, Wanted
from gatelift_kube.client import Client
from gatelift_kube.errors import ConflictError, NotFoundError
from gatelift_kube.resources import ObjectKey, ObjectRef, Resource


class Injection:
    """Writes what is wanted, if something differs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._log = structlog.get_logger("gatelift.webhooks")

    async def put(self, wanted: Wanted) -> None:
        """Bring both configurations up to date. KubeError: they cannot be read or written now; try again later."""
        await self._put(MUTATING, configuration.mutating(wanted))
        await self._put(VALIDATING, configuration.validating(wanted))

    async def _put(self, resource: Resource, webhooks: list[dict[str, Any]]) -> None:
        ref = ObjectRef(resource, ObjectKey("", configuration.NAME))
        try:
            served = await self._client.get(ref)
        except NotFoundError:
            self._log.warning(
                "nothing asks the webhooks: apply deploy/webhooks/configuration.yaml", configuration=resource.kind
            )
            return
        if json.loads(served.raw).get("webhooks") == webhooks:
            return
        body = {"metadata": {"resourceVersion": served.object.metadata.resource_version}, "webhooks": webhooks}
        try:
            await self._client.patch(ref, json.dumps(body).encode())
        except ConflictError:
            self._log.info("the other replica was first; compared again at the next check", configuration=resource.kind)
            return
        self._log.info("webhook configuration brought up to date", configuration=resource.kind, webhooks=len(webhooks))
