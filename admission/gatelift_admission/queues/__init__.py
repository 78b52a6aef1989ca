"""ClusterQueues and LocalQueues as the engine keeps them: whether they admit, and what waits in each.

Owns the pending workloads of each queue, their classes and heads.
"""
