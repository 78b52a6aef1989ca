"""Keeps the webhook configurations, and the conversion of our CRDs, as they should be. One patch at most each."""

from __future__ import annotations

import json
from typing import Any

import structlog

from gatelift.webhooks import configuration
from gatelift.webhooks.configuration import MUTATING, VALIDATING, Wanted
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import ConflictError, NotFoundError
from gatelift_kube.values.resources import KUEUE_GROUP, ObjectKey, ObjectRef, Resource

NOBODY_ASKS = "nothing asks the webhooks: apply deploy/webhooks/configuration.yaml"
LABEL = "app.kubernetes.io/name"
"""By this we know our own definitions from those of Kueue, which Kueue converts."""


class Injection:
    """Writes what is wanted, if something differs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._log = structlog.get_logger("gatelift.webhooks")
        self._absent: set[str] = set()

    def unasked(self) -> str:
        """Say which configurations are not there, "" where both are: what is queued then has no gate, and runs."""
        return f"{NOBODY_ASKS} ({' and '.join(sorted(self._absent))} {configuration.NAME})" if self._absent else ""

    async def put(self, wanted: Wanted) -> None:
        """Bring both configurations up to date. KubeError: they cannot be read or written now; try again later."""
        await self._put(MUTATING, configuration.mutating(wanted))
        await self._put(VALIDATING, configuration.validating(wanted))
        for plural in configuration.CONVERTED:
            await self._convert(f"{plural}.{KUEUE_GROUP}", configuration.conversion(wanted))

    async def _convert(self, name: str, conversion: dict[str, Any]) -> None:
        """Let the API server ask us about other versions of a kind, if its definition is one of ours."""
        ref = ObjectRef(configuration.DEFINITION, ObjectKey("", name))
        try:
            served = await self._client.get(ref)
        except NotFoundError:
            return
        meta = served.object.metadata
        if meta.labels.get(LABEL) != configuration.NAME or meta.deletion_timestamp is not None:
            return
        if json.loads(served.raw)["spec"].get("conversion") == conversion:
            return
        # One of `url` and `service` is allowed: what is not wanted has to go.
        client = {"url": None, "service": None, **conversion["webhook"]["clientConfig"]}
        wanted = {**conversion, "webhook": {**conversion["webhook"], "clientConfig": client}}
        body = {"metadata": {"resourceVersion": meta.resource_version}, "spec": {"conversion": wanted}}
        try:
            await self._client.patch(ref, json.dumps(body).encode())
        except ConflictError:
            self._log.info("changed meanwhile; compared again at the next check", definition=name)
            return
        self._log.info("conversion brought up to date", definition=name)

    async def _put(self, resource: Resource, webhooks: list[dict[str, Any]]) -> None:
        ref = ObjectRef(resource, ObjectKey("", configuration.NAME))
        try:
            served = await self._client.get(ref)
        except NotFoundError:
            self._absent.add(resource.kind)
            self._log.warning(NOBODY_ASKS, configuration=resource.kind)
            return
        self._absent.discard(resource.kind)
        if json.loads(served.raw).get("webhooks") == webhooks:
            return
        body = {"metadata": {"resourceVersion": served.object.metadata.resource_version}, "webhooks": webhooks}
        try:
            await self._client.patch(ref, json.dumps(body).encode())
        except ConflictError:
            self._log.info("the other replica was first; compared again at the next check", configuration=resource.kind)
            return
        self._log.info("webhook configuration brought up to date", configuration=resource.kind, webhooks=len(webhooks))
