"""Pod specs that leave their namespace, by what Kubernetes calls them; judged by our policy and by real API servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


def a_spec(**fields: Any) -> Json:
    """Return a pod spec with these fields."""
    return {"containers": [{"name": "c", "image": "i"}], **fields}


def a_container(**fields: Any) -> Json:
    """Return a pod spec whose container has these fields."""
    return {"containers": [{"name": "c", "image": "i", **fields}]}


def _secured(**context: Any) -> Json:
    return a_container(securityContext=context)


def _volume(**source: Any) -> Json:
    return a_spec(volumes=[{"name": "v", **source}])


def _names(*names: str) -> frozenset[str]:
    return frozenset(names)


def _leaving(key: str, effect: str, seconds: int | None) -> Json:
    within = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": key, "operator": "Exists", "effect": effect, **within}


@dataclass(frozen=True, kw_only=True)
class _Rest:
    allowed: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case(_Rest):
    """A spec, the fields of `Policy` that let it be, and annotations of its pod."""

    spec: Json


UNCONFINED = {"type": "Unconfined"}
APPARMOR = {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}
HOOK = {"postStart": {"httpGet": {"port": 1, "host": "10.0.0.1"}}}

BEYOND_BASELINE: dict[str, Case] = {
    "host network": Case(a_spec(hostNetwork=True), allowed={"host_network": True}),
    "host PID": Case(a_spec(hostPID=True), allowed={"host_pid": True}),
    "host IPC": Case(a_spec(hostIPC=True), allowed={"host_ipc": True}),
    "host path": Case(_volume(hostPath={"path": "/"}), allowed={"host_path": True}),
    "host port": Case(a_container(ports=[{"containerPort": 80, "hostPort": 80}]), allowed={"host_ports": True}),
    "privileged": Case(_secured(privileged=True), allowed={"privileged": True}),
    "capability": Case(_secured(capabilities={"add": ["SYS_ADMIN"]}), allowed={"capabilities": _names("SYS_ADMIN")}),
    "seccomp of a container": Case(_secured(seccompProfile=UNCONFINED), allowed={"unconfined": True}),
    "seccomp of a pod": Case(a_spec(securityContext={"seccompProfile": UNCONFINED}), allowed={"unconfined": True}),
    "seccomp where privileged may be": Case(_secured(seccompProfile=UNCONFINED), allowed={"privileged": True}),
    "AppArmor of a container": Case(_secured(appArmorProfile=UNCONFINED), allowed={"unconfined": True}),
    "AppArmor of a pod": Case(a_spec(securityContext={"appArmorProfile": UNCONFINED}), allowed={"unconfined": True}),
    "AppArmor by annotation": Case(a_spec(), annotations=APPARMOR, allowed={"unconfined": True}),
    "SELinux type": Case(_secured(seLinuxOptions={"type": "spc_t"}), allowed={"se_linux_types": _names("spc_t")}),
    "SELinux type of a pod": Case(
        a_spec(securityContext={"seLinuxOptions": {"type": "spc_t"}}), allowed={"se_linux_types": _names("spc_t")}
    ),
    "SELinux user": Case(_secured(seLinuxOptions={"user": "system_u"}), allowed={"privileged": True}),
    "SELinux role": Case(_secured(seLinuxOptions={"role": "system_r"}), allowed={"privileged": True}),
    "sysctl": Case(
        a_spec(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
        allowed={"sysctls": _names("kernel.*")},
    ),
    "probe of another host": Case(
        a_container(livenessProbe={"tcpSocket": {"port": 1, "host": "10.0.0.1"}}),
        allowed={"probe_hosts": _names("10.0.0.1")},
    ),
    "hook to another host": Case(a_container(lifecycle=HOOK), allowed={"probe_hosts": _names("*")}),
}
"""What level Baseline refuses."""

BEYOND_LISTS: dict[str, Case] = {
    "flexVolume": Case(_volume(flexVolume={"driver": "d/d"}), allowed={"volumes": _names("flexVolume")}),
    "nfs": Case(_volume(nfs={"server": "s", "path": "/"}), allowed={"volumes": _names("nfs")}),
    "iscsi": Case(
        _volume(iscsi={"targetPortal": "t", "iqn": "iqn.2015-02.example.com:t", "lun": 0}),
        allowed={"volumes": _names("iscsi")},
    ),
    "inline CSI": Case(_volume(csi={"driver": "d"}), allowed={"volumes": _names("csi")}),
    "Secret of a driver": Case(
        _volume(csi={"driver": "d", "nodePublishSecretRef": {"name": "s"}}), allowed={"volumes": _names("csi")}
    ),
    "certificate of a signer": Case(
        _volume(projected={"sources": [{"podCertificate": {"signerName": "example.com/s", "keyType": "ED25519"}}]}),
        allowed={"volumes": _names("projected", "podCertificate")},
    ),
    "every taint": Case(a_spec(tolerations=[{"operator": "Exists"}]), allowed={"tolerate_all": True}),
    "taint of a control plane": Case(
        a_spec(tolerations=[{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]),
        allowed={"tolerations": _names("node-role.*")},
    ),
    "taint of a node in trouble": Case(
        a_spec(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
        allowed={"tolerations": _names("node.kubernetes.io/unschedulable")},
    ),
    "to stay on a lost node": Case(
        a_spec(tolerations=[{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}]),
        allowed={"tolerations": _names("node.kubernetes.io/*")},
    ),
    "to stay on a lost node for long": Case(
        a_spec(tolerations=[_leaving("node.kubernetes.io/unreachable", "NoExecute", 301)]),
        allowed={"tolerations": _names("node.kubernetes.io/*")},
    ),
    "to start on a lost node": Case(
        a_spec(tolerations=[_leaving("node.kubernetes.io/not-ready", "NoSchedule", None)]),
        allowed={"tolerations": _names("node.kubernetes.io/not-ready")},
    ),
    "to leave another node in trouble in time": Case(
        a_spec(tolerations=[_leaving("node.kubernetes.io/memory-pressure", "NoExecute", 0)]),
        allowed={"tolerations": _names("node.kubernetes.io/memory-pressure")},
    ),
    "what has a token volume's name": Case(
        a_spec(volumes=[{"name": "kube-api-access-x", "nfs": {"server": "s", "path": "/"}}]),
        allowed={"volumes": _names("nfs")},
    ),
    "scheduler": Case(a_spec(schedulerName="mine"), allowed={"schedulers": _names("mine")}),
    "runtime class": Case(a_spec(runtimeClassName="kata"), allowed={"runtime_classes": _names("kata")}),
}
"""What Baseline lets pass, and reaches beyond the namespace all the same."""

SECRETS = {"secretKeyRef": {"name": "s", "key": "k"}}
AT_HOME: dict[str, Case] = {
    "nothing": Case(a_spec()),
    "Secrets by name": Case(
        a_container(env=[{"name": "A", "valueFrom": SECRETS}], envFrom=[{"secretRef": {"name": "s"}}])
    ),
    "a volume of a Secret": Case(_volume(secret={"secretName": "s"})),
    "a token of its account": Case(
        _volume(projected={"sources": [{"serviceAccountToken": {"path": "t", "audience": "sts"}}]})
    ),
    "a claim": Case(_volume(persistentVolumeClaim={"claimName": "c"})),
    "a Secret to pull by": Case(a_spec(imagePullSecrets=[{"name": "s"}])),
    "a taint with a key": Case(a_spec(tolerations=[{"key": "gpu", "operator": "Exists"}])),
    "to leave a lost node at once": Case(
        a_spec(tolerations=[_leaving("node.kubernetes.io/unreachable", "NoExecute", 0)])
    ),
    "confined": Case(
        _secured(
            seccompProfile={"type": "RuntimeDefault"},
            appArmorProfile={"type": "Localhost", "localhostProfile": "p"},
            seLinuxOptions={"type": "container_t", "level": "s0:c1,c2"},
        )
    ),
    "AppArmor's default by annotation": Case(
        a_spec(), annotations={"container.apparmor.security.beta.kubernetes.io/c": "runtime/default"}
    ),
    "a profile of the node by annotation": Case(
        a_spec(), annotations={"container.apparmor.security.beta.kubernetes.io/c": "localhost/p"}
    ),
    "other annotations": Case(a_spec(), annotations={"example.com/profile": "unconfined"}),
    "a safe sysctl": Case(a_spec(securityContext={"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]})),
    "a probe of itself": Case(a_container(livenessProbe={"httpGet": {"port": 1}})),
}
"""What passes by default, and Baseline, too."""

ALL_TYPES = frozenset({"secret", "csi", "azureFile", "projected", "persistentVolumeClaim"})
NAMES_A_SECRET: dict[str, Json] = {
    "volume": _volume(secret={"secretName": "s"}),
    "projected": _volume(projected={"sources": [{"secret": {"name": "s"}}]}),
    "csi": _volume(csi={"driver": "d", "nodePublishSecretRef": {"name": "s"}}),
    "azureFile": _volume(azureFile={"secretName": "s", "shareName": "n"}),
    "env": a_container(env=[{"name": "A", "valueFrom": SECRETS}]),
    "envFrom": a_container(envFrom=[{"secretRef": {"name": "s"}}]),
    "init": a_spec(initContainers=[{"name": "i", "image": "i", "envFrom": [{"secretRef": {"name": "s"}}]}]),
    "imagePullSecrets": a_spec(imagePullSecrets=[{"name": "s"}]),
    "claim": _volume(persistentVolumeClaim={"claimName": "s"}),
}
"""Where a pod names a Secret, or a claim."""
