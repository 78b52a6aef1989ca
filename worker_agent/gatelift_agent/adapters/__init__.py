"""Touches the world: the worker's Kubernetes API, the gRPC stream to the manager, metrics. No policy."""
