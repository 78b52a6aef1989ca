"""Joins the webhooks daemon: watches, certificate, configurations, server. `serve` runs until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from socket import gethostname

import structlog

from gatelift.config import METRICS_OFF, POD_FRAMEWORK, TOPOLOGY_GATE, Configuration
from gatelift.selector_settings import as_selector, managed_namespaces
from gatelift.webhooks.ancestors import Ancestors
from gatelift.webhooks.ancestry import KnownKinds
from gatelift.webhooks.configuration import SECRET_NAME, SERVICE, Wanted
from gatelift.webhooks.injection import Injection
from gatelift.webhooks.judge import Judge
from gatelift.webhooks.metrics import WebhookMetrics
from gatelift.webhooks.owners import Owners
from gatelift.webhooks.reservations import Reservations
from gatelift.webhooks.server import WebhookServer
from gatelift.webhooks.surroundings import PodsTaken, Surroundings
from gatelift.webhooks.tls import ServingTls
from gatelift_kinds.registry import SERVED, Registry
from gatelift_kube.api.client import Client
from gatelift_kube.api.events import EventRecorder
from gatelift_kube.deciding.errors import KubeError
from gatelift_kube.objects.meta import LabelSelector
from gatelift_kube.process import descriptors
from gatelift_kube.process.repetitions import watch_problems
from gatelift_kube.process.tasks import Supervisor, spawn
from gatelift_kube.serving import self_signed
from gatelift_kube.serving.certificates import Material
from gatelift_kube.serving.material_store import MaterialStore
from gatelift_kube.serving.metrics_access import MetricsAccess
from gatelift_kube.serving.status_server import StatusServer
from gatelift_kube.values.resources import ObjectKey

CHECK_SECONDS = 30.0
"""How often certificate and configurations are looked at when nothing has changed; renewal is due for 30 days."""
RETRY_SECONDS = 2.0
"""After a failed check: queued pods cannot be made while the configurations are wrong."""
DEFAULT_CLASS_GATE = "WorkloadPriorityClassDefaulting"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """Where to listen and what to take over.

    `url` is the address that the API server shall call, "" for the Service. `status_address` serves health, readiness
    and metrics, "" for none; metrics that are guarded have `metrics_address`, and no other. `client_ca` names a file of
    CAs: only who has a certificate of theirs is listened to.
    """

    namespace: str = "gatelift-system"
    host: str = ""
    port: int = 9443
    url: str = ""
    names: tuple[str, ...] = ()
    status_address: str = ""
    guards_metrics: bool = False
    metrics_address: str = ""
    client_ca: str = ""
    manage_without_queue: bool = False
    default_priority_class: bool = True
    topology_gate: bool = False
    namespace_selector: LabelSelector = field(default_factory=LabelSelector)
    pods: PodsTaken = field(default_factory=PodsTaken)
    external_frameworks: tuple[str, ...] = ()
    """Kinds as `Kind.version.group` that controllers of others queue."""
    pod_makers: tuple[str, ...] = ()
    """Accounts that make the pods of these."""
    instance: str = "webhooks"
    """Who speaks in events."""


def settings_of(configuration: Configuration, *, url: str = "", names: tuple[str, ...] = ()) -> WebhookSettings:
    """Return the settings that the configuration file gives.

    Without `managedJobsNamespaceSelector`, kube-system and the own namespace are left out, as in Kueue.
    """
    namespace = configuration.namespace
    selector = managed_namespaces(configuration.managed_jobs_namespace_selector, besides=namespace)
    return WebhookSettings(
        namespace=namespace,
        host=configuration.webhook.host,
        port=configuration.webhook.port,
        url=url,
        names=names,
        status_address=configuration.health.health_probe_bind_address,
        guards_metrics=configuration.gatelift.metrics_authentication,
        metrics_address=configuration.metrics.bind_address,
        client_ca=configuration.gatelift.webhook_client_ca,
        manage_without_queue=configuration.manage_jobs_without_queue_name,
        default_priority_class=configuration.feature_gates.get(DEFAULT_CLASS_GATE, True),
        topology_gate=configuration.feature_gates.get(TOPOLOGY_GATE, False),
        namespace_selector=selector,
        pods=PodsTaken(
            on=POD_FRAMEWORK in configuration.integrations.frameworks,
            namespaces=as_selector(configuration.integrations.pod_options.namespace_selector),
            labels=as_selector(configuration.integrations.pod_options.pod_selector),
        ),
        external_frameworks=configuration.integrations.external_frameworks,
        pod_makers=configuration.gatelift.pod_makers,
        instance=gethostname(),
    )


class Daemon:
    """The running daemon. `start`, then `stop`; `problem` is set when a part has failed for good."""

    def __init__(
        self,
        client: Client,
        settings: WebhookSettings,
        wall: Callable[[], datetime] | None = None,
        kinds: Registry = SERVED,
    ) -> None:
        self._client = client
        self._settings = settings
        self._wake = asyncio.Event()
        self._ready = False
        self._material: Material | None = None
        self._log = structlog.get_logger("gatelift.webhooks")
        self._tls = ServingTls(settings.client_ca)
        self.failed = asyncio.Event()
        self._supervisor = Supervisor(self._on_failure)
        self._surroundings = Surroundings(
            namespace_selector=settings.namespace_selector,
            manage_without_queue=settings.manage_without_queue,
            default_priority_class=settings.default_priority_class,
            pods=settings.pods,
            topology_gate=settings.topology_gate,
            changed=self._wake.set,
        )
        self._external = KnownKinds(settings.external_frameworks)
        self._recorder = EventRecorder(client, "gatelift.dev/webhooks", settings.instance)
        makers = frozenset(settings.pod_makers)
        judge = Judge(
            self._surroundings,
            Owners(client),
            Reservations(client),
            namespace=settings.namespace,
            ancestors=Ancestors(client, self._external, makers, record=self._recorder.record),
            external=self._external,
            makers=makers,
            kinds=kinds,
        )
        metrics = WebhookMetrics()
        self._server = WebhookServer(judge, self._surroundings.missing, self._tls.context, metrics.taken)
        service = (SERVICE, f"{SERVICE}.{settings.namespace}", f"{SERVICE}.{settings.namespace}.svc")
        where = ObjectKey(settings.namespace, SECRET_NAME)
        names = (*service, *settings.names)
        self._store = MaterialStore(client, where, names, wall or (lambda: datetime.now(UTC)))
        self._injection = Injection(client)
        access = MetricsAccess(client) if settings.guards_metrics else None
        self._status = StatusServer(
            metrics.registry, self.missing, lambda: None, access=access, but=self._injection.unasked
        )
        self._guarded = StatusServer(metrics.registry, self.missing, lambda: None, access=access)

    @property
    def port(self) -> int:
        """Return the port that reviews are taken on."""
        return self._server.port

    @property
    def metrics_address(self) -> str:
        """Return where guarded metrics are served, "" where they are not."""
        return self._guarded.address

    @property
    def status_address(self) -> str:
        """Return where health and readiness are served."""
        return self._status.address

    def missing(self) -> str:
        """Return why reviews are not answered yet, "" when they are."""
        return self._surroundings.missing() or ("" if self._ready else "certificate and configurations not in place")

    async def start(self) -> None:
        """Start everything and return.

        OSError: an address is taken. KubeError: no certificate could be kept. ClientCAError: the file is not usable.
        """
        await self._install(await self._store.current())
        for reflector in self._surroundings.reflectors(self._client, watch_problems(self._log)):
            self._supervisor.spawn(f"watch {reflector.resource.plural}", reflector.run())
        await self._server.start(self._settings.host, self._settings.port)
        if self._settings.status_address:
            await self._status.start(self._settings.status_address)
        if self._settings.guards_metrics and self._settings.metrics_address not in METRICS_OFF:
            await self._guarded.start(self._settings.metrics_address, self_signed.context(SERVICE, datetime.now(UTC)))
        if self._external.external:
            self._supervisor.spawn("events", self._recorder.run())
        self._supervisor.spawn("keep", self._keep())
        self._log.info("webhooks listen", port=self._server.port, url=self._settings.url or f"Service {SERVICE}")

    async def stop(self) -> None:
        """End everything within a few seconds."""
        await self._supervisor.stop()
        await self._server.stop()
        await self._status.stop()
        await self._guarded.stop()

    async def _keep(self) -> None:
        """Keep certificate and configurations as they should be, at each change of what they depend on."""
        while True:
            self._wake.clear()
            try:
                material = await self._store.current()
                if not self._surroundings.missing():
                    await self._injection.put(self._wanted(material))
                    self._ready = True
                await self._install(material)
                pause = CHECK_SECONDS
            except KubeError as error:
                self._log.warning("certificate or configurations not checked", problem=str(error))
                pause = RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    def _wanted(self, material: Material) -> Wanted:
        everywhere = self._settings.manage_without_queue
        return Wanted(
            namespace=self._settings.namespace,
            ca_bundle=material.bundle,
            url=self._settings.url,
            unmarked_namespaces=() if everywhere else self._surroundings.default_queue_namespaces(),
            unmarked_selector=self._settings.namespace_selector if everywhere else None,
            external=self._external.external,
            makers=self._settings.pod_makers,
        )

    async def _install(self, material: Material) -> None:
        await asyncio.to_thread(self._tls.install, material)
        self._material = material

    def _on_failure(self, name: str, error: BaseException) -> None:
        self._log.error("a part of the webhooks failed", part=name, problem=repr(error))
        self.failed.set()


async def serve(client: Client, settings: WebhookSettings, stop: asyncio.Event) -> bool:
    """Run the daemon until `stop` is set or a part fails for good; return whether it ended because it was told to."""
    descriptors.raise_limit()
    daemon = Daemon(client, settings)
    await daemon.start()
    waits = [spawn("webhooks told to stop", stop.wait()), spawn("webhooks failed", daemon.failed.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await daemon.stop()
    return stop.is_set()
