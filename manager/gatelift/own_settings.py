"""The section `gatelift` of the manager's configuration: what is ours and not Kueue's; a part of `config`."""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator
from pydantic_core import PydanticKnownError
from pydantic_settings import SettingsConfigDict

from gatelift.core.state.readiness_values import SLICE_HISTORY
from gatelift.core.state.release_values import DEADLINE_SECONDS
from gatelift.durations import Seconds
from gatelift_admission.values.model import PREEMPTION_PATIENCE, WAKE_PERIOD, WAKE_PERIOD_MAX
from gatelift_kinds.registry import SERVED
from gatelift_kube.process.setting_types import Flag, Whole, address
from gatelift_kube.process.settings_file import EnvironmentSettings, Section
from gatelift_wire.sessions.leases import least_lost, longest_right
from gatelift_wire.values.limits import LANDED_SECONDS, LEASE_SECONDS_MAX, LOST_SECONDS, SUSPECT_SECONDS

DAY = 24 * 3600.0
DEADLINE_SECONDS_MAX = 7 * DAY
"""Who waits longer for a pod that does not stop wants no deadline."""


SLICE_HISTORY_MAX = 1000
"""Each is an object of the API server. Who wants to know more of what was has `afterFinished`, events and metrics."""


class Dispatch(Section):
    """How clusters are chosen."""

    offers_at_once: Whole = Field(default=3, ge=1, le=64)
    bid_seconds: Seconds = Field(default=0.3, gt=0, le=60)
    hold_seconds: Seconds = Field(default=30.0, ge=5, le=3600)


class AdmissionSettings(Section):
    """How the admission engine looks again at what waits (decision 12), and what is kept of elastic work."""

    wake_period: Seconds = Field(default=WAKE_PERIOD, ge=0, le=60)
    wake_period_max: Seconds = Field(default=WAKE_PERIOD_MAX, ge=0, le=60)
    preemption_patience: Seconds = Field(default=PREEMPTION_PATIENCE, ge=0, le=60)
    slice_history_limit: Whole = Field(default=SLICE_HISTORY, ge=0, le=SLICE_HISTORY_MAX)
    """So many past slices of one elastic object are kept, the latest (KEP-77)."""


class Leases(Section):
    """Leases of agents: each time is longer than the one before."""

    renew: Seconds = Field(default=10.0, ge=1, le=3600)
    suspect_after: Seconds = Field(default=SUSPECT_SECONDS, validate_default=True)
    lost_after: Seconds = Field(default=LOST_SECONDS, le=LEASE_SECONDS_MAX, validate_default=True)
    stop_after: Seconds = Field(default=2400.0, validate_default=True)

    @field_validator("suspect_after")
    @classmethod
    def _after_renewals(cls, value: float, info: ValidationInfo) -> float:
        renew = info.data.get("renew")
        if renew is not None and value <= renew:
            raise ValueError(f"must be above renew ({renew:g} s), or each renewal counts as missed before it is due")
        return value

    @field_validator("lost_after")
    @classmethod
    def _after_suspicion(cls, value: float, info: ValidationInfo) -> float:
        suspect = info.data.get("suspect_after")
        if suspect is not None and longest_right(value) < suspect:
            raise ValueError(
                f"must be at least {math.ceil(least_lost(suspect))} s with suspectAfter {suspect:g} s: an agent that "
                f"is not suspect may start work, and its last write is to have landed ({LANDED_SECONDS:g} s) before "
                "it counts as lost"
            )
        return value

    @field_validator("stop_after")
    @classmethod
    def _after_loss(cls, value: float, info: ValidationInfo) -> float:
        lost = info.data.get("lost_after")
        if lost is not None and value <= lost:
            raise ValueError(f"must be above lostAfter ({lost:g} s): what runs outlasts the connection")
        return value


def _of_a_kind(said: object) -> object:
    """Take the name of a kind whose objects are placed."""
    names = [each.kind for each in SERVED.travelling]
    if said not in names:
        raise PydanticKnownError("literal_error", {"expected": " or ".join(map(repr, names))})
    return said


class QuotaRelease(Section):
    """When quota of what is evicted is free again (KEP-6143)."""

    strategies: dict[Annotated[str, BeforeValidator(_of_a_kind)], Literal["OnTerminating", "OnTerminal"]] = Field(
        default={}
    )
    """By kind; what is not named has the default. The annotation `gatelift.dev/release` of a ClusterQueue wins."""
    deadline: Seconds = Field(default=DEADLINE_SECONDS, le=DEADLINE_SECONDS_MAX)
    """OnTerminal: so long after the last deletionTimestamp it is free of what has not stopped."""
    ghost_limit: Annotated[float, Field(ge=0, le=1000)] | Literal["none"] = 1.0
    """So much may be occupied after its quota was freed before the stop, by what a ClusterQueue could ever have."""


class Certificates(Section):
    """Certificates of agents."""

    lifetime: Seconds = Field(default=DAY, ge=60, le=365 * DAY)
    renew_by_key_for: Seconds = Field(default=30 * DAY, le=3650 * DAY)
    token_lifetime: Seconds = Field(default=DAY, ge=60, le=30 * DAY)
    server_names: tuple[str, ...] = ("localhost", "127.0.0.1")

    @field_validator("server_names")
    @classmethod
    def _names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not re.fullmatch(r"[0-9a-fA-F:.]+|(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", name):
                raise ValueError(f"{name!r} is no host name or address; write what agents dial, without the port")
        return value


_ACCOUNT = re.compile(r"system:serviceaccount:[a-z0-9]([-a-z0-9]*[a-z0-9])?:[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class Gatelift(EnvironmentSettings):
    """Our own section."""

    model_config = SettingsConfigDict(env_prefix="GATELIFT_")

    listen: str = "0.0.0.0:7443"
    enrol_listen: str = "0.0.0.0:7444"
    advertise: str = ""
    api_in_flight: Whole = Field(default=64, ge=1, le=1024)
    debug_invariants: Flag = False
    webhook_client_ca: str = ""
    metrics_authentication: Flag = False
    pod_makers: tuple[str, ...] = ()
    """Accounts that make the pods of `integrations.externalFrameworks`: whose pod one is, they are believed."""

    @field_validator("pod_makers")
    @classmethod
    def _accounts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _ACCOUNT.fullmatch(name):
                raise ValueError(f"{name!r} is no service account; write system:serviceaccount:NAMESPACE:NAME")
        return value

    @field_validator("listen", "enrol_listen", "advertise")
    @classmethod
    def _address(cls, value: str, info: ValidationInfo) -> str:
        advertised = info.field_name == "advertise"
        if advertised and not value:
            return value
        if info.field_name == "enrol_listen" and value == info.data.get("listen") and not value.endswith(":0"):
            raise ValueError(f"{value!r} is listened on for sessions; write another port")
        return address(value, host_needed=advertised)

    admission: AdmissionSettings = AdmissionSettings()
    dispatch: Dispatch = Dispatch()
    leases: Leases = Leases()
    release: QuotaRelease = QuotaRelease()
    certificates: Certificates = Certificates()
