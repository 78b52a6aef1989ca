import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX
from gatelift_wire.sessions.leases import (
    AgentLease,
    FenceMargins,
    LeaseStanding,
    ManagerLease,
    agent_stop_at,
    landed_seconds,
    least_lost,
    longest_right,
    manager_fence_at,
    start_right_seconds,
)
from gatelift_wire.values import limits

DELAY = st.floats(0, 40)
DRIFT = st.floats(1 - limits.CLOCK_DRIFT, 1 + limits.CLOCK_DRIFT)


def test_suspect_after_fifteen_seconds_and_lost_after_sixty() -> None:
    lease = ManagerLease(contact_at=100.0)
    assert [lease.standing(at) for at in (114.9, 115.0, 159.9, 160.0)] == [
        LeaseStanding.CURRENT,
        LeaseStanding.SUSPECT,
        LeaseStanding.SUSPECT,
        LeaseStanding.LOST,
    ]


def test_a_granted_renewal_counts_from_its_reception() -> None:
    assert ManagerLease(contact_at=0.0).granted(10.0, limits.LEASE_SECONDS).lost_at == 70.0


def test_a_longer_grant_makes_lost_later_even_when_shorter_ones_follow() -> None:
    lease = ManagerLease(contact_at=0.0).granted(10.0, 600.0).granted(20.0, 45.0)
    assert lease.lost_at == 10.0 + (600.0 + limits.LANDED_SECONDS) * (1 + limits.CLOCK_DRIFT)
    assert lease.suspect_at == 35.0


def test_contact_never_goes_back() -> None:
    assert ManagerLease(contact_at=50.0).touched(40.0).contact_at == 50.0
    assert ManagerLease(contact_at=50.0).granted(40.0, 45.0).contact_at == 50.0


def test_the_usual_lease_is_over_before_the_cluster_counts_as_lost() -> None:
    assert longest_right(limits.LOST_SECONDS) == limits.LEASE_SECONDS
    assert start_right_seconds(limits.LEASE_SECONDS) <= limits.LOST_SECONDS
    assert limits.RENEW_SECONDS < limits.SUSPECT_SECONDS < limits.LEASE_SECONDS < limits.LOST_SECONDS


def test_a_write_takes_no_longer_than_the_kubernetes_layer_lets_it() -> None:
    assert limits.WRITE_SECONDS == WRITE_SECONDS_MAX


@given(sent=st.floats(0, 1e6), delay=DELAY, seconds=st.floats(1, 14400), drift=DRIFT)
def test_hd_102_nothing_lands_that_was_started_under_a_grant_once_the_manager_says_lost(
    sent: float, delay: float, seconds: float, drift: float
) -> None:
    """R1: with `drift` manager's seconds to one of the agent's, the agent's last write has landed before LOST."""
    agent = AgentLease().granted(sent, seconds)
    assert agent.until is not None
    last_write_lands = sent + (agent.until - sent + limits.LANDED_SECONDS) * drift
    received = sent + delay
    manager = ManagerLease(contact_at=received).granted(received, seconds)
    assert manager.lost_at >= last_write_lands - 1e-6


def test_the_agents_right_counts_from_sending() -> None:
    lease = AgentLease().granted(100.0, 45.0)
    assert (lease.valid(144.9), lease.valid(145.0)) == (True, False)
    assert not AgentLease().valid(0.0)


def test_an_older_answer_shortens_nothing() -> None:
    lease = AgentLease().granted(110.0, 45.0).granted(100.0, 45.0)
    assert (lease.acknowledged_at, lease.until) == (110.0, 155.0)


@given(
    sent=st.floats(0, 1e6),
    delay=DELAY,
    stop_after=st.floats(60, 14400),
    drift=DRIFT,
    pods=st.integers(0, 5000),
    restart=st.floats(0, 300),
)
def test_the_managers_deadline_is_later_than_the_agents_whatever_the_delay(
    sent: float, delay: float, stop_after: float, drift: float, pods: int, restart: float
) -> None:
    margins = FenceMargins(kill_grace=30.0, restart_margin=restart, pods=pods)
    agents_time = agent_stop_at(sent, stop_after) - sent + restart + pods / margins.deletes_per_second
    all_stopped = sent + (agents_time + limits.LANDED_SECONDS + margins.kill_grace) * drift
    assert manager_fence_at(sent + delay, stop_after, margins) >= all_stopped - 1e-6


def test_the_margin_holds_what_the_fence_needs() -> None:
    margins = FenceMargins(kill_grace=30.0, restart_margin=60.0, pods=100, deletes_per_second=10.0)
    assert manager_fence_at(0.0, 1000.0, margins) == pytest.approx((1000.0 + 30.0 + 60.0 + 30.0 + 10.0) * 1.01)


@given(lost=st.floats(1, 1e6))
def test_the_longest_right_is_over_with_its_last_write_before_the_cluster_is_lost(lost: float) -> None:
    right = longest_right(lost)
    assert right == 0.0 or start_right_seconds(right) <= lost * (1 + 1e-9)
    assert right <= lost


def test_other_times_move_suspect_and_lost() -> None:
    lease = ManagerLease(contact_at=0.0, suspect_seconds=40.0, lost_seconds=600.0).granted(10.0, 450.0).touched(20.0)
    assert (lease.suspect_at, lease.lost_at) == (60.0, 620.0)


def test_a_recorded_grant_counts_from_the_moment_it_may_have_been_given() -> None:
    assert ManagerLease(contact_at=0.0).counted(5.0, 450.0).lost_at == 5.0 + start_right_seconds(450.0)


@given(right=st.floats(1, 1e6))
def test_the_least_time_until_lost_allows_for_the_right_and_is_the_least(right: float) -> None:
    assert longest_right(math.ceil(least_lost(right))) >= right
    assert longest_right(least_lost(right) - 2.0) < right + 1.0


def test_hd_250_who_counts_with_a_write_waits_for_it_by_the_fastest_clock() -> None:
    assert landed_seconds() / (1.0 + limits.CLOCK_DRIFT) >= limits.LANDED_SECONDS
    assert landed_seconds(0.5) == 1.5 * limits.LANDED_SECONDS


def test_a_write_may_land_after_its_time_limit_and_no_later_than_is_counted_with() -> None:
    """As long again at an API server that got it as we gave it up, and what its etcd takes (7 s by default)."""
    assert limits.LANDED_SECONDS >= 2 * WRITE_SECONDS_MAX + 7.0
