"""Admission webhooks: a stateless daemon of its own, TLS with its own certificates."""
