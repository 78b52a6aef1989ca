"""Takes the webhooks off an API server, so that nothing of Gatelift stands between a loader and etcd.

With them goes the older version of Kueue's kinds, which only they can convert: an API server that keeps a cache of a
version and cannot fill it lists all objects again and again, and each bench would measure that. Neighbours: `fleet` and
`one_cluster` call this.
"""

from __future__ import annotations

import json

from gatelift.webhooks.configuration import CONVERTED
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.values.resources import KUEUE_GROUP

_REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
_CONFIGURATIONS = tuple(f"{_REGISTRATION}/{kind}webhookconfigurations/gatelift" for kind in ("mutating", "validating"))
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def leave_empty(client: Client) -> None:
    """Leave the configurations without webhooks; a start of the daemon fills them again."""
    for path in _CONFIGURATIONS:
        await _merge(client, path, {"webhooks": []})


async def remove(client: Client) -> None:
    """Delete the configurations for good, and serve one version only."""
    for path in _CONFIGURATIONS:
        await client.raw("DELETE", path)
    await serve_one_version(client)


async def serve_one_version(client: Client) -> None:
    """Serve of each kind only the version that is stored."""
    for plural in CONVERTED:
        path = f"{_DEFINITIONS}/{plural}.{KUEUE_GROUP}"
        spec = json.loads(await client.raw("GET", path))["spec"]
        stored = [version for version in spec["versions"] if version["storage"]]
        await _merge(client, path, {"spec": {"versions": stored, "conversion": {"strategy": "None", "webhook": None}}})


async def _merge(client: Client, path: str, body: dict[str, object]) -> None:
    await client.raw("PATCH", path, body=json.dumps(body).encode(), content_type=PatchKind.MERGE.value)
