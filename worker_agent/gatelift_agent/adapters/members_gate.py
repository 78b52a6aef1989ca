"""The webhook that gates what drivers make at this worker: a port with TLS, its certificate, its configuration.

Every replica answers, whoever leads: it is asked for one pod, and knows nothing else. While none answers, a pod that
names a group and a role in an accepted namespace cannot be made (`failurePolicy: Fail`): one that came without its gate
would run beyond its charge. A webhook, since it does for every version of Kubernetes that is served; a
MutatingAdmissionPolicy is on by itself from 1.36 on alone.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog
from aiohttp import web

from gatelift_kinds.shared import gate_of_members as gate
from gatelift_kinds.shared import markers
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import ConflictError, KubeError, NotFoundError
from gatelift_kube.serving.certificates import Material
from gatelift_kube.serving.door import Door, Limits
from gatelift_kube.serving.material_context import serving_context
from gatelift_kube.serving.material_store import MaterialStore
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef, Resource
from gatelift_kube.values.unreadable import UNREADABLE
from gatelift_wire.values.keys import LABEL_ACCEPT, LABEL_ORIGIN

NAME = "gatelift-agent-members"
"""Of the Service, the Secret and the configuration."""
WEBHOOK = "members.agent.gatelift.dev"
PATH = "/members"
API_VERSION = "admission.k8s.io/v1"
CONFIGURATION = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    namespaced=False,
)
NAMES_A_GROUP = " || ".join(
    f"(has(object.metadata.{where}) && '{markers.POD_GROUP_NAME}' in object.metadata.{where})"
    for where in ("labels", "annotations")
)
"""Which pods with a role the API server asks about, as CEL: a selector sees no annotations."""
BODY_BYTES_MAX = 4 * 1024 * 1024
"""A review of one pod: what an API server takes is smaller."""
BODY_SECONDS = 4.0
LIMITS = Limits(connections_max=128, bytes_max=16 * 1024 * 1024, idle_seconds=180.0)
"""It has to be the API server that closes an idle connection; see the webhooks of the manager."""
CHECK_SECONDS = 60.0
RETRY_SECONDS = 5.0
STOP_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings:
    """`address`: to listen on. `url`: by which the API server comes, "" by the Service."""

    namespace: str
    address: str
    url: str = ""
    names: tuple[str, ...] = ()


class MembersGate:
    """`start`, then `run` for as long as the process lives, then `stop`."""

    def __init__(
        self, client: Client, settings: GateSettings, wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._client = client
        self._settings = settings
        service = (NAME, f"{NAME}.{settings.namespace}", f"{NAME}.{settings.namespace}.svc")
        where = ObjectKey(settings.namespace, NAME)
        self._store = MaterialStore(client, where, (*service, *settings.names), wall)
        self._door = Door("members", LIMITS, self._context)
        self._installed: Material | None = None
        self._tls: ssl.SSLContext | None = None
        self._log = structlog.get_logger("gatelift.agent.members")
        self.problem = "its certificate and configuration are not in place"

    async def start(self) -> None:
        """Listen. KubeError: no certificate can be kept. OSError: the address is taken."""
        await self._install(await self._store.current())
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_post(PATH, self._take)
        host, _, port = self._settings.address.rpartition(":")
        await self._door.open(app, host or "0.0.0.0", whole(port) or 0, stop_seconds=STOP_SECONDS)  # noqa: S104

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._door.address[1]

    async def stop(self) -> None:
        """Stop listening."""
        await self._door.close()

    async def run(self) -> None:
        """Keep certificate and configuration as they should be."""
        while True:
            try:
                material = await self._store.current()
                self.problem = await self._configure(material)
                await self._install(material)
                pause = RETRY_SECONDS if self.problem else CHECK_SECONDS
            except KubeError as error:
                self._log.warning("certificate or configuration not checked", problem=str(error))
                pause = RETRY_SECONDS
            await asyncio.sleep(pause)

    async def _install(self, material: Material) -> None:
        if material != self._installed:
            self._tls = await asyncio.to_thread(serving_context, material)
            self._installed = material

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            raise RuntimeError("no certificate has been installed")
        return self._tls

    async def _configure(self, material: Material) -> str:
        """Write what the API server is to ask, if something differs; return why that is not in place."""
        ref = ObjectRef(CONFIGURATION, ObjectKey("", NAME))
        try:
            served = await self._client.get(ref)
        except NotFoundError:
            return f"nothing asks the gate: apply the component group-members ({CONFIGURATION.kind} {NAME})"
        wanted = [webhook(self._settings, material.bundle)]
        if json.loads(served.raw).get("webhooks") != wanted:
            body = {"metadata": {"resourceVersion": served.object.metadata.resource_version}, "webhooks": wanted}
            try:
                await self._client.patch(ref, json.dumps(body).encode())
            except ConflictError:
                return "the configuration was changed meanwhile"
            self._log.info("webhook configuration brought up to date")
        return ""

    async def _take(self, request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await request.read()
            return web.Response(body=answer(body), content_type="application/json")
        except NoReviewError as error:
            return web.Response(status=400, text=f"{error}\n")
        except TimeoutError:
            return web.Response(status=408, text="the body came too slowly\n")


class NoReviewError(Exception):
    """What came is no review of an API server."""


class _Request(msgspec.Struct):
    uid: str
    object: dict[str, Any] | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Request


_REVIEW = msgspec.json.Decoder(_Review)


def answer(body: bytes) -> bytes:
    """Return the answer to a review: every pod is let in, those of groups gated. NoReviewError for anything else."""
    try:
        review = _REVIEW.decode(body)
    except UNREADABLE as error:
        raise NoReviewError("the body is no AdmissionReview") from error
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        raise NoReviewError(f"send {API_VERSION} AdmissionReview")
    response: dict[str, Any] = {"uid": review.request.uid, "allowed": True}
    operations = gate.operations(review.request.object or {})
    if operations:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(operations)).decode()
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def webhook(settings: GateSettings, ca_bundle: bytes) -> dict[str, Any]:
    """Return the one webhook of the configuration, every field said that the API server would fill in."""
    service = {"namespace": settings.namespace, "name": NAME, "path": PATH, "port": 443}
    client = {"url": f"{settings.url}{PATH}"} if settings.url else {"service": service}
    return {
        "name": WEBHOOK,
        "clientConfig": {**client, "caBundle": base64.b64encode(ca_bundle).decode()},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": [POD.plural],
                "scope": "Namespaced",
            }
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {
            "matchExpressions": [
                {"key": LABEL_ACCEPT, "operator": "In", "values": ["true"]},
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": [settings.namespace, "kube-system"],
                },
            ]
        },
        "objectSelector": {
            "matchExpressions": [
                {"key": markers.POD_GROUP_ROLE, "operator": "Exists"},
                {"key": LABEL_ORIGIN, "operator": "DoesNotExist"},
            ]
        },
        "matchConditions": [{"name": "names-a-group", "expression": NAMES_A_GROUP}],
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "admissionReviewVersions": ["v1"],
        "reinvocationPolicy": "IfNeeded",
    }
