"""What a manager tells people who take clusters in: where agents find it, and how long a token lasts. Pure.

Published in the ConfigMap that also holds the certificate bundle, so that `gatelift cluster add` needs no configuration
file. Neighbours: `cli.clusters` (reads it).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatelift_kube.values.numbers import whole

if TYPE_CHECKING:  # it brings pydantic, which the command line does without
    from gatelift.config import Configuration

MANAGER = "manager"
ENROL = "enrol"
TOKEN_SECONDS = "tokenSeconds"  # noqa: S105 - a key of the ConfigMap, no secret
TOKEN_SECONDS_USUAL = 24 * 3600
NAMESPACE = "gatelift-system"
"""Where the manager is, unless its file says otherwise."""
LEASE_NAME = "gatelift-manager"
"""The Lease by which the manager's leader is elected. At most one leads because all elect by this one: no setting
names another, of which another would be elected, or which the manager's role does not cover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """Addresses (host:port) of the session and the enrolment port, "" where nobody has said them; a token's life."""

    manager: str = ""
    enrol: str = ""
    token_seconds: int = TOKEN_SECONDS_USUAL

    def data(self) -> dict[str, str]:
        """Return the entries of the ConfigMap."""
        return {MANAGER: self.manager, ENROL: self.enrol, TOKEN_SECONDS: str(self.token_seconds)}


def of(config: Configuration) -> Introduction:
    """Return what a configuration says. The enrolment port is reached at the advertised host, by the port it has here.

    Where a load balancer gives it another one, `gatelift cluster add --enrol` says so.
    """
    settings = config.gatelift
    host, port = settings.advertise.rpartition(":")[0], settings.enrol_listen.rpartition(":")[2]
    seconds = math.trunc(settings.certificates.token_lifetime)
    return Introduction(manager=settings.advertise, enrol=f"{host}:{port}" if host else "", token_seconds=seconds)


def read(data: Mapping[str, str]) -> Introduction:
    """Return what was published; what is missing or broken (an older manager's) is as usual."""
    seconds = whole(data.get(TOKEN_SECONDS, ""))
    return Introduction(
        manager=data.get(MANAGER, ""),
        enrol=data.get(ENROL, ""),
        token_seconds=TOKEN_SECONDS_USUAL if seconds is None else seconds,
    )
