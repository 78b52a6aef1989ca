"""Keeps the agent's key and certificate: in a directory that only the agent reads, or in a Secret of its own namespace.

The key is made here and never leaves. What is kept: the key, the certificate chain, the CAs to trust.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import AlreadyExistsError, ConflictError, KubeError, NotFoundError
from gatelift_kube.decoding.decoding import Served
from gatelift_kube.objects.core import Secret
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import SECRET, ObjectKey, ObjectRef

KEY, CERTIFICATE, BUNDLE = "tls.key", "tls.crt", "ca.crt"
"""Names of the parts, as Secrets of type kubernetes.io/tls have them."""

TOKEN, NEXT_KEY = "token.sha256", "next.key"
"""Names of the parts that only matter when the agent is enrolled anew."""


class IdentityStoreError(Exception):
    """The identity cannot be read or kept; one line with the way out."""


class IdentityChangedError(IdentityStoreError):
    """Something else is kept than was read last: another replica wrote it, and it is to be read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Key (PEM), certificate chain (PEM, empty until enrolled) and trusted CAs (PEM). Never logged.

    `token_digest` is the hash of the token that the key was enrolled with, empty where that is not known. `next_key`
    is there while the agent is being enrolled anew: a token belongs to the first key that shows it, so a restart must
    go on with the same one.
    """

    key: bytes = field(repr=False)
    certificate: bytes = b""
    bundle: bytes = b""
    token_digest: bytes = b""
    next_key: bytes = field(default=b"", repr=False)

    def parts(self) -> dict[str, bytes]:
        """Return all parts by name, in an order in which a crash between two of them leaves what can be used."""
        return {
            BUNDLE: self.bundle,
            TOKEN: self.token_digest,
            KEY: self.key,
            CERTIFICATE: self.certificate,
            NEXT_KEY: self.next_key,
        }

    @staticmethod
    def of(parts: Mapping[str, bytes]) -> Identity | None:
        """Return the identity that these parts make, None without a key."""
        if not parts.get(KEY):
            return None
        return Identity(
            key=parts[KEY],
            certificate=parts.get(CERTIFICATE, b""),
            bundle=parts.get(BUNDLE, b""),
            token_digest=parts.get(TOKEN, b""),
            next_key=parts.get(NEXT_KEY, b""),
        )


class IdentityStore(Protocol):
    """Where an identity is kept."""

    async def load(self) -> Identity | None:
        """Return what is kept, None when nothing is. Raises IdentityStoreError."""
        ...

    async def save(self, identity: Identity) -> None:
        """Keep it, all parts or none, in the place of what was read or kept here last.

        Raises IdentityStoreError, of which IdentityChangedError says that something else is kept by now.
        """
        ...


class DirectoryStore:
    """Files of mode 0600 in a directory of mode 0700; replaced by renaming, so a crash leaves a whole file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def load(self) -> Identity | None:
        """Return what is kept, None when nothing is. Raises IdentityStoreError."""
        return await asyncio.to_thread(self._load)

    async def save(self, identity: Identity) -> None:
        """Keep it. Raises IdentityStoreError."""
        await asyncio.to_thread(self._save, identity)

    def _load(self) -> Identity | None:
        try:
            parts = {name: self._read(name) for name in (KEY, CERTIFICATE, BUNDLE, TOKEN, NEXT_KEY)}
        except OSError as error:
            raise IdentityStoreError(
                f"identityDirectory {self._directory}: cannot be read ({error.strerror}); make it the agent's own"
            ) from error
        return Identity.of(parts)

    def _read(self, name: str) -> bytes:
        path = self._directory / name
        return path.read_bytes() if path.exists() else b""

    def _save(self, identity: Identity) -> None:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, content in identity.parts().items():
                self._write(name, content)
        except OSError as error:
            raise IdentityStoreError(
                f"identityDirectory {self._directory}: cannot be written ({error.strerror}); make it the agent's own"
            ) from error

    def _write(self, name: str, content: bytes) -> None:
        fresh = self._directory / f".{name}.new"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._directory / name)


class SecretStore:
    """A Secret of the agent's own namespace; RBAC lets it read this one by name and no other.

    Written only over what was read or written here last, by resourceVersion: a write of a replica that does not lead
    any more, or one that lands late, puts no older key in the place of a newer one.
    """

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self._ref = ObjectRef(SECRET, ObjectKey(namespace, name))
        self._known: ObjectMeta | None = None

    async def load(self) -> Identity | None:
        """Return what is kept, None when nothing is. Raises IdentityStoreError."""
        try:
            served = await self._client.get(self._ref)
        except NotFoundError:
            self._known = None
            return None
        except KubeError as error:
            raise IdentityStoreError(f"{self._ref}: cannot be read ({error}); bind the agent's Role") from error
        if not isinstance(served.object, Secret):
            raise IdentityStoreError(f"{self._ref}: is not a Secret; delete it and enrol again")
        self._known = served.object.metadata
        return Identity.of({name: base64.b64decode(text) for name, text in served.object.data.items()})

    async def save(self, identity: Identity) -> None:
        """Keep it. Raises IdentityStoreError; IdentityChangedError where the Secret is not as it was read."""
        data = {name: base64.b64encode(content).decode() for name, content in identity.parts().items()}
        try:
            served = await self._patch(data, self._known) if self._known is not None else await self._create(data)
        except (ConflictError, AlreadyExistsError) as error:
            raise IdentityChangedError(f"{self._ref}: was written by another replica; it is read again") from error
        except KubeError as error:
            raise IdentityStoreError(f"{self._ref}: cannot be written ({error}); bind the agent's Role") from error
        self._known = served.object.metadata

    async def _patch(self, data: dict[str, str], known: ObjectMeta) -> Served:
        meta = {"uid": known.uid, "resourceVersion": known.resource_version}
        try:
            return await self._client.patch(self._ref, msgspec.json.encode({"metadata": meta, "data": data}))
        except NotFoundError:
            return await self._create(data)  # somebody deleted it: what is known here is all that there is

    async def _create(self, data: dict[str, str]) -> Served:
        namespace = self._ref.key.namespace
        document = {
            "apiVersion": SECRET.api_version,
            "kind": SECRET.kind,
            "metadata": {"name": self._ref.key.name, "namespace": namespace},
            "type": "Opaque",
            "data": data,
        }
        return await self._client.create(SECRET, namespace, msgspec.json.encode(document))
