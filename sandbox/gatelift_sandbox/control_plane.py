"""How one real control plane is laid out and started: files, ports and command lines; `processes` runs them.

etcd without fsync (a sandbox may lose its data with the machine), kube-apiserver with RBAC and the admission plugins of
its release, kube-controller-manager with one ServiceAccount per controller as kubeadm sets it up, kube-scheduler, and
our stand-in kubelet. All listen on 127.0.0.1 only. The client-side rate limits of scheduler and controller manager
(50 and 20 requests per second by default) are lifted, else they would bound every measurement on one machine.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from gatelift_sandbox import pki
from gatelift_sandbox.build import Binaries
from gatelift_sandbox.provider import NodeShape

ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER, KUBELET = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
)
START_ORDER = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER, KUBELET)

SERVICE_RANGE = "10.96.0.0/16"
ISSUER = "https://kubernetes.default.svc"
CLIENT_QPS = 1000
"""Requests per second that scheduler and controller manager allow themselves: more than two cores can serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The TCP ports of one control plane on 127.0.0.1."""

    etcd: int
    etcd_peer: int
    api: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where everything of one control plane lies. Equal values give equal command lines, so a restart is a start."""

    name: str
    folder: Path
    ports: Ports
    audit: bool = False

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://127.0.0.1:{self.ports.api}"

    @property
    def etcd_url(self) -> str:
        """URL of etcd."""
        return f"http://127.0.0.1:{self.ports.etcd}"

    @property
    def keys(self) -> Path:
        """Folder of keys and certificates."""
        return self.folder / "pki"

    @property
    def data(self) -> Path:
        """Folder of etcd's data."""
        return self.folder / "etcd"

    @property
    def logs(self) -> Path:
        """Folder of the logs, one file a process."""
        return self.folder / "logs"

    @property
    def record(self) -> Path:
        """The stand-in kubelet's record."""
        return self.folder / "record.jsonl"

    def log(self, process: str) -> Path:
        """Return the log of one process."""
        return self.logs / f"{process}.log"

    def kubeconfig(self, who: str) -> Path:
        """Return the kubeconfig of one process (or `admin`)."""
        return self.keys / f"{who}.kubeconfig"


def write_files(layout: Layout) -> None:
    """Write keys, certificates, kubeconfigs and configuration files of a new control plane."""
    authority = pki.Authority(f"{layout.name}-ca")
    keys = layout.keys
    layout.logs.mkdir(parents=True, exist_ok=True)
    pki.write_private(keys / "ca.crt", authority.pem)
    pki.write_private(keys / "ca.key", authority.key_pem)
    hosts = ("127.0.0.1", "localhost", "10.96.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
    serving = authority.server("kube-apiserver", *hosts)
    pki.write_private(keys / "apiserver.crt", serving.certificate)
    pki.write_private(keys / "apiserver.key", serving.key)
    tokens = pki.key_pair()
    pki.write_private(keys / "sa.key", tokens.key)
    pki.write_private(keys / "sa.pub", tokens.certificate)
    users = {
        "admin": ("kubernetes-admin", "system:masters"),
        KUBELET: (
            "gatelift-sandbox-kubelet",
            "system:masters",
            "system:nodes",
        ),  # it plays many nodes with one identity
        CONTROLLER_MANAGER: ("system:kube-controller-manager",),
        SCHEDULER: ("system:kube-scheduler",),
    }
    for who, (user, *groups) in users.items():
        client = authority.client(user, *groups)
        text = pki.kubeconfig(name=layout.name, server=layout.server, authority=authority.pem, client=client)
        pki.write_private(layout.kubeconfig(who), text)
    (layout.folder / "scheduler.yaml").write_text(_scheduler_configuration(layout))
    (layout.folder / "audit.yaml").write_text(_audit_policy())


def command(process: str, layout: Layout, binaries: Binaries, nodes: NodeShape) -> list[str]:
    """Return the command line of one process."""
    match process:
        case "etcd":
            return [str(binaries.etcd), *_etcd(layout)]
        case "kube-apiserver":
            return [str(binaries.kube_apiserver), *_api_server(layout)]
        case "kube-controller-manager":
            return [str(binaries.kube_controller_manager), *_controller_manager(layout)]
        case "kube-scheduler":
            return [
                str(binaries.kube_scheduler),
                f"--config={layout.folder / 'scheduler.yaml'}",
                "--secure-port=0",
                *_quiet(),
            ]
        case "kubelet":
            return [sys.executable, "-m", "gatelift_sandbox.kubelet", *_kubelet(layout, nodes)]
        case _:
            raise ValueError(process)


def _etcd(layout: Layout) -> list[str]:
    peer = f"http://127.0.0.1:{layout.ports.etcd_peer}"
    return [
        "--name=sandbox",
        f"--data-dir={layout.data}",
        f"--listen-client-urls={layout.etcd_url}",
        f"--advertise-client-urls={layout.etcd_url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=sandbox={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _api_server(layout: Layout) -> list[str]:
    keys = layout.keys
    flags = [
        f"--etcd-servers={layout.etcd_url}",
        f"--secure-port={layout.ports.api}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # 127.0.0.1 is no valid endpoint of a Service
        "--authorization-mode=Node,RBAC",
        f"--client-ca-file={keys / 'ca.crt'}",
        f"--tls-cert-file={keys / 'apiserver.crt'}",
        f"--tls-private-key-file={keys / 'apiserver.key'}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={keys / 'sa.pub'}",
        f"--service-account-signing-key-file={keys / 'sa.key'}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--allow-privileged=true",
        "--shutdown-delay-duration=0s",
        *_quiet(),
    ]
    if layout.audit:
        flags += [f"--audit-policy-file={layout.folder / 'audit.yaml'}", f"--audit-log-path={layout.log('audit')}"]
    return flags


def _controller_manager(layout: Layout) -> list[str]:
    keys = layout.keys
    kubeconfig = layout.kubeconfig(CONTROLLER_MANAGER)
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={keys / 'sa.key'}",
        f"--root-ca-file={keys / 'ca.crt'}",
        f"--cluster-signing-cert-file={keys / 'ca.crt'}",
        f"--cluster-signing-key-file={keys / 'ca.key'}",
        f"--kube-api-qps={CLIENT_QPS}",
        f"--kube-api-burst={2 * CLIENT_QPS}",
        "--leader-elect=false",
        "--secure-port=0",
        *_quiet(),
    ]


def _kubelet(layout: Layout, nodes: NodeShape) -> list[str]:
    flags = [
        f"--kubeconfig={layout.kubeconfig(KUBELET)}",
        f"--cluster={layout.name}",
        f"--nodes={nodes.count}",
        f"--cpu={nodes.cpu}",
        f"--memory={nodes.memory}",
        f"--pods={nodes.pods}",
        f"--record={layout.record}",
    ]
    return flags + [f"--extended={name}={amount}" for name, amount in nodes.extended.items()]


def _quiet() -> list[str]:
    return ["--profiling=false", "--v=0"]


def _scheduler_configuration(layout: Layout) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {
                "kubeconfig": str(layout.kubeconfig(SCHEDULER)),
                "qps": CLIENT_QPS,
                "burst": 2 * CLIENT_QPS,
            },
        }
    )


def _audit_policy() -> str:
    """Return a policy that logs who did what to which resource, once per request, without bodies."""
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted", "Panic"],
        "rules": [{"level": "Metadata"}],
    }
    return json.dumps(policy)
