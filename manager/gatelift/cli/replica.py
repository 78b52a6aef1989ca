"""The admission engine in the command line: fed from the objects, with the caller's own rights; it decides nothing.

So `explain` says what the manager would find, without asking it. What the caller may not list is left out, and said;
the manager's settings are read from its ConfigMap, or from a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatelift import admission_settings
from gatelift.cli.slices import chain_name
from gatelift.config import load, read_text
from gatelift_admission.engine import Engine
from gatelift_admission.told.outlook import Outlook, outlook, settle
from gatelift_admission.values.model import ElasticSlice, EngineSettings
from gatelift_kinds.shared.sizes import SizeError, number_of
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.deciding.errors import ApiError, NotFoundError
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.core import ConfigMap, Namespace
from gatelift_kube.objects.kueue import ClusterQueue, Workload
from gatelift_kube.values.resources import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    COHORT,
    CONFIG_MAP,
    LIMIT_RANGE,
    LOCAL_QUEUE,
    NAMESPACE,
    RESOURCE_FLAVOR,
    RUNTIME_CLASS,
    WORKLOAD,
    ObjectKey,
    ObjectRef,
    Resource,
)

FORBIDDEN = 403
CONFIGURATION = ObjectRef(CONFIG_MAP, ObjectKey("gatelift-system", "gatelift-manager"))
CONFIGURATION_KEY = "config.yaml"
"""Where `deploy/` puts the manager's file."""
STRATEGIES = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
"""Fair sharing where no file can be seen; that it is on, shows in the queues' statuses."""
ESSENTIAL = frozenset({CLUSTER_QUEUE, LOCAL_QUEUE, RESOURCE_FLAVOR, WORKLOAD, NAMESPACE})
"""Without these nothing can be said; without the others, what is said is said with a reservation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """An engine that knows what the caller may see. `unseen`: kinds that he may not list, in the plural."""

    engine: Engine
    unseen: tuple[str, ...] = ()

    def outlook(self, uid: str) -> Outlook | None:
        """Return what a waiting workload could expect; None where it does not wait, or too little may be seen."""
        return outlook(self.engine.state, uid) if not self.blind else None

    @property
    def blind(self) -> bool:
        """Say whether something without which nothing can be said may not be seen."""
        return any(resource.plural in self.unseen for resource in ESSENTIAL)


async def replica(client: Client, file: Path | None = None) -> Replica:
    """Read everything that admission depends on, at once, and return an engine that knows it.

    `file`: the manager's configuration, where that is not in its ConfigMap.
    """
    settings, unseen = (admission_settings.of(load(file)), ()) if file is not None else await _settings(client)
    lists = await asyncio.gather(*(_listed(client, resource) for resource in _FEED))
    found = dict(zip(_FEED, lists, strict=True))
    queues = found[CLUSTER_QUEUE] or []
    fair = any(isinstance(one, ClusterQueue) and one.status.fair_sharing is not None for one in queues)
    engine = Engine(settings or EngineSettings(fair_sharing=STRATEGIES if fair else ()))
    engine.wall_clock(dt.datetime.now(dt.UTC).timestamp(), 0.0)
    for resource, feed in _FEED.items():
        for one in found[resource] or ():
            feed(engine)(one)
    engine.recall()
    settle(engine.state)
    return Replica(engine=engine, unseen=(*(one.plural for one in _FEED if found[one] is None), *unseen))


async def _settings(client: Client) -> tuple[EngineSettings | None, tuple[str, ...]]:
    """Return the engine's settings by the manager's ConfigMap, None where there is none; and what may not be seen."""
    try:
        served = await client.get(CONFIGURATION)
    except NotFoundError:
        return None, ()
    except ApiError as error:
        if error.status == FORBIDDEN:
            return None, (f"{CONFIGURATION.resource.plural} (the manager's settings)",)
        raise
    config_map = served.object
    text = config_map.data.get(CONFIGURATION_KEY, "") if isinstance(config_map, ConfigMap) else ""
    return admission_settings.of(read_text(text)), ()


async def _listed(client: Client, resource: Resource) -> list[KubeObject] | None:
    """Return all objects of a kind, None where the caller may not list them."""
    try:
        return [
            served.object
            async for page in client.list(resource, Selection())
            for served in page.items
            if served.object is not None
        ]
    except ApiError as error:
        if error.status == FORBIDDEN:
            return None
        raise


def _namespace(engine: Engine) -> Callable[[Any], None]:
    def feed(one: Namespace) -> None:
        engine.namespace_changed(one.metadata.name, one.metadata.labels)

    return feed


def _workload(engine: Engine) -> Callable[[Any], None]:
    def feed(one: Workload) -> None:
        chain = chain_name(one)
        if chain is not None:
            with contextlib.suppress(SizeError):  # what cannot be read waits for nothing
                said = ElasticSlice(chain="/".join(chain), number=number_of(one.metadata.annotations))
                engine.set_slice(one.metadata.uid, said)
        engine.workload_changed(one, 0.0)

    return feed


_FEED: dict[Resource, Callable[[Engine], Callable[[Any], None]]] = {
    NAMESPACE: _namespace,
    RUNTIME_CLASS: lambda engine: engine.runtime_class_changed,
    LIMIT_RANGE: lambda engine: engine.limit_range_changed,
    RESOURCE_FLAVOR: lambda engine: engine.flavor_changed,
    ADMISSION_CHECK: lambda engine: engine.admission_check_changed,
    COHORT: lambda engine: engine.cohort_changed,
    CLUSTER_QUEUE: lambda engine: engine.cluster_queue_changed,
    LOCAL_QUEUE: lambda engine: engine.local_queue_changed,
    WORKLOAD: _workload,
}
"""What the engine is fed, and by which of its doors."""
