"""IS-6: no field of Kueue's configuration is ignored in silence: it is read, named as without effect, or refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatelift import config

EVERY_FIELD = """
namespace: kueue-system
webhook: {port: 9444, host: 127.0.0.1, certDir: /certs}
leaderElection:
  leaderElect: true
  resourceName: other.example.com
  resourceNamespace: other
  resourceLock: leases
  leaseDuration: 20s
  renewDeadline: 12s
  retryPeriod: 3s
metrics:
  bindAddress: ":9090"
  enableClusterQueueResources: true
  customLabels: [{name: team, sourceLabelKey: example.com/team}]
  localQueueMetrics: {enable: false, localQueueSelector: {matchLabels: {a: b}}}
health: {healthProbeBindAddress: ":9091", readinessEndpointName: ready, livenessEndpointName: live}
pprofBindAddress: ":8083"
controller: {groupKindConcurrency: {Job.batch: 7}, cacheSyncTimeout: 3m}
tls: {minVersion: VersionTLS13, cipherSuites: [TLS_AES_128_GCM_SHA256]}
manageJobsWithoutQueueName: true
managedJobsNamespaceSelector: {matchLabels: {managed: "yes"}}
internalCertManagement: {enable: false, webhookServiceName: service, webhookSecretName: secret}
waitForPodsReady:
  enable: true
  timeout: 7m
  blockAdmission: true
  recoveryTimeout: 8m
  requeuingStrategy: {timestamp: Creation, backoffLimitCount: 3, backoffBaseSeconds: 10, backoffMaxSeconds: 40}
clientConnection: {qps: 51, burst: 101}
integrations:
  frameworks: [batch/job, pod, ray.io/rayjob]
  externalFrameworks: [PipelineRun.v1.tekton.dev]
  podOptions: {namespaceSelector: {matchLabels: {a: b}}, podSelector: {matchLabels: {a: b}}}
  labelKeysToCopy: [team]
queueVisibility: {updateIntervalSeconds: 5, clusterQueues: {maxCount: 10}}
visibility: {bindPort: 8082}
multiKueue:
  gcInterval: 2m
  origin: mine
  workerLostTimeout: 16m
  dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-incremental
  externalFrameworks: [{name: PipelineRun.v1.tekton.dev}]
  incrementalDispatcherConfig: {stepSize: 4}
  clusterProfile: {credentialsProviders: [{name: p, execConfig: {command: c}}]}
fairSharing: {enable: true, preemptionStrategies: [LessThanInitialShare]}
admissionFairSharing: {usageHalfLifeTime: 10m, usageSamplingInterval: 5m, resourceWeights: {cpu: 2.0}}
resources:
  excludeResourcePrefixes: [example.com/]
  transformations: [{input: a, strategy: Replace, multiplyBy: cpu, outputs: {b: "1"}}]
  deviceClassMappings: [{name: gpu, deviceClassNames: [gpu.example.com]}]
  quotaCheckStrategy: IgnoreUndeclared
featureGates: {PartialAdmission: true}
objectRetentionPolicies: {workloads: {afterFinished: 1h, afterDeactivatedByKueue: 2h}}
"""
"""Each field of v1beta1 and v1beta2, at another value than its default."""


def fields(document: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in document.items():
        here = (*path, key)
        if isinstance(value, dict) and ".".join(here) not in {*config.IN_USE, "tls"} and here[0] not in WHOLE:
            yield from fields(value, here)
        else:
            yield here, value


WHOLE = {"controller", "internalCertManagement", "queueVisibility", "visibility", "admissionFairSharing"}
"""Sections of which nothing is read, which are named as one."""
FIELDS = list(fields(yaml.safe_load(EVERY_FIELD)))


@pytest.mark.parametrize(("path", "value"), FIELDS, ids=[".".join(path) for path, _ in FIELDS])
def test_is_6_no_field_of_kueues_configuration_is_ignored_in_silence(
    tmp_path: Path, path: tuple[str, ...], value: Any
) -> None:
    document: Any = value
    for key in reversed(path):
        document = {key: document}
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(document))
    dotted = ".".join(path)
    told = config.load(file).without_effect()
    is_read = any(dotted == used or dotted.startswith(f"{used}.") for used in config.IN_USE)
    is_named = any(dotted == one.split(":")[0] or dotted.startswith(f"{one.split(':')[0]}.") for one in told)
    assert is_read or is_named or any(one.startswith(f"{dotted}.") for one in told)


def test_is_6_a_configuration_with_every_field_of_kueue_is_accepted_in_both_versions(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    for version in ("v1beta1", "v1beta2"):
        file.write_text(f"apiVersion: config.kueue.x-k8s.io/{version}\nkind: Configuration\n{EVERY_FIELD}")
        told = config.load(file).without_effect()
        assert len(told) == len(set(told))
        assert {"pprofBindAddress", "metrics.customLabels", "multiKueue.origin", "tls"} < set(told)


def test_is_6_a_key_without_a_value_is_not_set_as_in_kueue(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("metrics:\nfeatureGates:\nwebhook:\n  port:\nmultiKueue:\n  origin:\ngatelift:\n  dispatch:\n")
    loaded = config.load(file)
    assert loaded == config.load(None)
    assert loaded.without_effect() == ()
    file.write_text("metricz:\n")
    with pytest.raises(config.ConfigError, match="metricz: is no key of the configuration"):
        config.load(file)
