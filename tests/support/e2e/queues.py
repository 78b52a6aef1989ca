"""The queues that all end-to-end scenarios share; those of `admission` come on top."""

from __future__ import annotations

SENDING_QUEUES = ("multi", "two-flavors")
"""Those whose work runs on workers."""
QUEUES = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default-flavor}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: small-flavor}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: workers}
spec: {clusters: [w1, w2]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: workers}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: workers}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: multi}
spec:
  namespaceSelector: {}
  admissionChecksStrategy: {admissionChecks: [{name: workers}]}
  resourceGroups:
    - coveredResources: [cpu, memory]
      flavors:
        - name: default-flavor
          resources: [{name: cpu, nominalQuota: "12"}, {name: memory, nominalQuota: 64Gi}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: two-flavors}
spec:
  namespaceSelector: {}
  admissionChecksStrategy: {admissionChecks: [{name: workers}]}
  resourceGroups:
    - coveredResources: [cpu]
      flavors:
        - {name: small-flavor, resources: [{name: cpu, nominalQuota: "1"}]}
        - {name: default-flavor, resources: [{name: cpu, nominalQuota: "4"}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: at-home}
spec:
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu]
      flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: "4"}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: multi, namespace: team-a}
spec: {clusterQueue: multi}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: two-flavors, namespace: team-a}
spec: {clusterQueue: two-flavors}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: at-home, namespace: team-a}
spec: {clusterQueue: at-home}
"""
