"""Clusters on one machine: the embedded API server, real control planes as processes, kind, a stand-in kubelet.

Imported by tests, benchmarks and the `demo`, `up` and `down` verbs only.
"""
