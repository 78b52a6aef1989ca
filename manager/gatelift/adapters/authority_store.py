"""Where the certificate authority is kept: a Secret for the keys, a ConfigMap for what agents have to trust.

Several manager replicas share it: whoever creates the Secret first wins, the others read it. A rotation (`gatelift ca`)
is a write to the Secret by a person; it is seen here within `REFRESH_SECONDS`.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from collections.abc import Callable, Mapping

import msgspec
import structlog

from gatelift.adapters import authority
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import AlreadyExistsError, KubeError, NotFoundError
from gatelift_kube.objects.core import ConfigMap, Secret
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import CONFIG_MAP, SECRET, WORKER_CLUSTER, ObjectKey, ObjectRef

NAME = "gatelift-ca"
"""Of the Secret and of the ConfigMap, in the manager's namespace."""

REFRESH_SECONDS = 10.0
"""How soon a rotation is seen; agents renew far less often."""

SERVER_LIFETIME = dt.timedelta(days=7)
"""Of the server's own certificate, which lives in memory only and is made anew at half of it."""

LABELS = {"app.kubernetes.io/part-of": "gatelift"}


SHOWN_MAX = 20
"""Clusters that a line names."""


def _is_let_in(found: object) -> bool:
    return isinstance(found, WorkerCluster) and bool(found.status.key_digest)


class AuthorityStore:
    """The authority as of now, and the server's certificate."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        server_names: tuple[str, ...],
        wall: Callable[[], dt.datetime],
        *,
        told: Mapping[str, str] | None = None,
    ) -> None:
        """`told`: further entries of the ConfigMap (`gatelift.introduction`)."""
        self._told = told or {}
        self._client = client
        self._namespace = namespace
        self._server_names = server_names
        self._wall = wall
        self._state: authority.AuthorityState | None = None
        self._served: tuple[authority.KeyPair, bytes] | None = None
        self._renew_at = dt.datetime.min.replace(tzinfo=dt.UTC)
        self._log = structlog.get_logger("gatelift.authority")

    @property
    def state(self) -> authority.AuthorityState:
        """Return the authority; `load` was called before."""
        if self._state is None:
            raise authority.AuthorityError("the certificate authority is not loaded yet")
        return self._state

    def server_pair(self) -> authority.KeyPair:
        """Return the server's key and certificate. Changes nothing, so that any thread may ask."""
        return self._serving()[0]

    def server_credentials(self) -> tuple[bytes, bytes, bytes]:
        """Return key, chain and the bundle of client CAs for a handshake now. Any thread may ask."""
        pair, bundle = self._serving()
        return pair.key, pair.certificate, bundle

    def _serving(self) -> tuple[authority.KeyPair, bytes]:
        if self._served is None:
            raise authority.AuthorityError("the certificate authority is not loaded yet")
        return self._served

    async def load(self) -> None:
        """Read the authority, or make it. Raises KubeError or AuthorityError."""
        ref = ObjectRef(SECRET, ObjectKey(self._namespace, NAME))
        try:
            self._take(await self._read(ref))
        except NotFoundError:
            made = authority.new_state(self._wall())
            if await self._keep(made):
                await self._say_anew()
            else:
                made = await self._read(ref)
            self._take(made)
        await self._publish()

    async def _keep(self, state: authority.AuthorityState) -> bool:
        """Make the Secret; False where somebody else has."""
        document = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": NAME, "namespace": self._namespace, "labels": LABELS},
            "type": "Opaque",
            "data": state.to_secret(),
        }
        try:
            await self._client.create(SECRET, self._namespace, json.dumps(document).encode())
        except AlreadyExistsError:
            return False
        return True

    async def _say_anew(self) -> None:
        """Say it where a new authority shuts clusters out that an earlier one has let in (HD-266)."""
        shut_out = []
        async for page in self._client.list(WORKER_CLUSTER):
            shut_out += [each.object.metadata.name for each in page.items if _is_let_in(each.object)]
        if shut_out:
            self._log.warning(
                "a new certificate authority was made, which the agents of these clusters do not know",
                clusters=sorted(shut_out)[:SHOWN_MAX],
                way_out=f"put Secret {self._namespace}/{NAME} back from a backup and restart the managers, "
                "or take each cluster in again: gatelift cluster add NAME",
            )

    async def keep_fresh(self) -> None:
        """Follow rotations, renew the server's certificate and mend the ConfigMap, until cancelled."""
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            await self.refresh()

    async def refresh(self) -> None:
        """Do one round of that; what fails is logged, and the last authority stays in use."""
        try:
            found = await self._read(ObjectRef(SECRET, ObjectKey(self._namespace, NAME)))
            if found != self._state:
                self._log.info("certificate authority changed")
            self._take(found)
            await self._publish()
        except NotFoundError:
            await self._put_back()
        except (KubeError, authority.AuthorityError) as error:
            self._log.warning("certificate authority not read; the last one stays in use", problem=str(error))
        if self._state is not None and self._wall() >= self._renew_at:
            self._take(self._state)

    async def _put_back(self) -> None:
        """Keep the authority that is in use, whose Secret somebody has deleted: a restart would lose it (HD-266)."""
        if self._state is None:
            return
        try:
            if await self._keep(self._state):
                self._log.warning("the Secret of the certificate authority was deleted, and is put back", secret=NAME)
        except KubeError as error:
            self._log.warning(
                "the Secret of the certificate authority is gone, and a restart loses it", problem=str(error)
            )

    def _take(self, state: authority.AuthorityState) -> None:
        """Use this authority. The server's certificate is made here only, and handed out together with its bundle."""
        now = self._wall()
        signer_changed = self._state is None or state.current != self._state.current
        if self._served is None or signer_changed or now >= self._renew_at:
            pair = authority.new_server(state, self._server_names, SERVER_LIFETIME, now)
            self._renew_at = now + SERVER_LIFETIME / 2
        else:
            pair = self._served[0]
        self._state, self._served = state, (pair, state.bundle)

    async def _read(self, ref: ObjectRef) -> authority.AuthorityState:
        served = await self._client.get(ref)
        return authority.AuthorityState.from_secret(msgspec.json.decode(served.raw, type=Secret).data)

    async def _publish(self) -> None:
        """Put the bundle, and where agents find us, where `gatelift cluster add` and charts find it."""
        data = {**self._told, "ca.crt": self.state.bundle.decode()}
        ref = ObjectRef(CONFIG_MAP, ObjectKey(self._namespace, NAME))
        try:
            served = await self._client.get(ref)
            found = msgspec.json.decode(served.raw, type=ConfigMap).data
            if all(found.get(key) == value for key, value in data.items()):
                return
            await self._client.patch(ref, json.dumps({"data": data}).encode())
        except NotFoundError:
            document = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": NAME, "namespace": self._namespace, "labels": LABELS},
                "data": data,
            }
            try:
                await self._client.create(CONFIG_MAP, self._namespace, json.dumps(document).encode())
            except AlreadyExistsError:
                return
