"""Errors of the sandbox, each one line that a person reads: what is wrong and the way out."""

from __future__ import annotations


class SandboxError(Exception):
    """Base of all: nothing else leaves a provider on purpose."""


class MissingToolError(SandboxError):
    """A program that the provider needs (go, docker, kind) is not installed or does not work."""


class BuildError(SandboxError):
    """Building the control-plane binaries failed; the text names the log."""


class StartError(SandboxError):
    """A cluster or one of its processes did not start in time; the text ends with the last lines of the log."""


class UnknownClusterError(SandboxError):
    """No running cluster of that name is known in the state directory."""


class UnsupportedError(SandboxError):
    """The provider cannot do what was asked (pausing the API server of a kind node, ...)."""


class AlreadyThereError(SandboxError):
    """A cluster of that name is there and was not touched."""
