"""Touches the world: the Kubernetes API, the gRPC server for agents, certificates, metrics. No policy."""
