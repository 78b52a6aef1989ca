"""By which rule quota of what is being stopped is free, and when: the whole table (KEP-6143)."""

from __future__ import annotations

import pytest

from gatelift.core.records.drains import AllLeave
from gatelift.core.rules.release import Due, due, rule_for
from gatelift.core.state.release_values import ReleaseSettings
from gatelift_kinds.registry import SERVED, WITH_GROUPS
from gatelift_kube.objects.kueue import ClusterQueue
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_wire.values.release import ReleaseRule

TERMINATING, TERMINAL, GRACE = ReleaseRule.ON_TERMINATING, ReleaseRule.ON_TERMINAL, ReleaseRule.AFTER_GRACE
DEFAULT = ReleaseSettings()
GATE_OFF = ReleaseSettings(fast_pods=False)
BY_KIND = ReleaseSettings(by_kind={"Pod": TERMINAL, "Job": TERMINAL})
EARLY_PODS = ReleaseSettings(by_kind={"Pod": TERMINATING}, fast_pods=False)


@pytest.mark.parametrize(
    ("settings", "kind", "said", "rule"),
    [
        pytest.param(DEFAULT, "Pod", None, TERMINATING, id="who sets nothing has Kueue's rule for pods"),
        pytest.param(DEFAULT, "Job", None, TERMINATING, id="and for Jobs"),
        pytest.param(GATE_OFF, "Pod", None, GRACE, id="with the gate off a pod has the older rule (QR-2)"),
        pytest.param(GATE_OFF, "Job", None, TERMINATING, id="and a Job its own"),
        pytest.param(BY_KIND, "Pod", None, TERMINAL, id="the configuration says it for pods (QR-5)"),
        pytest.param(BY_KIND, "Job", None, TERMINAL, id="and for Jobs (QR-5)"),
        pytest.param(EARLY_PODS, "Pod", None, TERMINATING, id="the kind is more specific than the gate"),
        pytest.param(BY_KIND, "Pod", "OnTerminating", TERMINATING, id="the queue is more specific than the kind"),
        pytest.param(DEFAULT, "Job", "OnTerminal", TERMINAL, id="also to the later rule"),
        pytest.param(GATE_OFF, "Pod", "OnTerminal", TERMINAL, id="and than the gate"),
        pytest.param(DEFAULT, "Pod", "onterminating", TERMINAL, id="what nobody knows is the later one (BG-33)"),
        pytest.param(DEFAULT, "Pod", "", TERMINAL, id="nothing is nothing that anybody knows (BG-33)"),
        pytest.param(DEFAULT, "Pod", "AfterGrace", TERMINAL, id="the older rule is the gate's alone (BG-33)"),
    ],
)
def test_the_more_specific_rule_wins(settings: ReleaseSettings, kind: str, said: str | None, rule: ReleaseRule) -> None:
    annotations = {} if said is None else {"gatelift.dev/release": said}
    found = SERVED.named(kind)
    assert found is not None
    assert rule_for(settings, found, ClusterQueue(metadata=ObjectMeta(name="q", annotations=annotations))) is rule


@pytest.mark.parametrize(
    ("settings", "said", "rule"),
    [
        pytest.param(DEFAULT, None, TERMINATING, id="QR-4 a group as a pod"),
        pytest.param(GATE_OFF, None, GRACE, id="QR-4 with the gate off as well"),
        pytest.param(BY_KIND, None, TERMINAL, id="QR-4 what the file says of pods"),
        pytest.param(BY_KIND, "OnTerminating", TERMINATING, id="QR-4 and its queue before that"),
    ],
)
def test_a_group_has_the_rule_of_pods(settings: ReleaseSettings, said: str | None, rule: ReleaseRule) -> None:
    annotations = {} if said is None else {"gatelift.dev/release": said}
    found = WITH_GROUPS.named("PodGroup")
    assert found is not None
    assert rule_for(settings, found, ClusterQueue(metadata=ObjectMeta(name="q", annotations=annotations))) is rule


LEAVE = AllLeave(at=100.0, stops_by=160.0, running_stops_by=130.0)
PATIENT = AllLeave(at=100.0, stops_by=160.0, running_stops_by=130.0, holds=True)
LATE = AllLeave(at=200.0, stops_by=160.0, running_stops_by=130.0)


@pytest.mark.parametrize(
    ("rule", "leave", "when"),
    [
        pytest.param(TERMINATING, LEAVE, Due(100.0), id="OnTerminating: as all leave"),
        pytest.param(GRACE, LEAVE, Due(130.0), id="the older rule: when the time of those that run is over, once"),
        pytest.param(GRACE, LATE, Due(200.0), id="not before all leave"),
        pytest.param(TERMINAL, LEAVE, Due(760.0, True), id="OnTerminal: the deadline, from the last deletionTimestamp"),
        pytest.param(TERMINAL, LATE, Due(800.0, True), id="not before all leave, either"),
        pytest.param(TERMINATING, PATIENT, Due(760.0, True), id="a cluster may insist on the stop"),
    ],
)
def test_quota_is_free_at_a_stated_moment(rule: ReleaseRule, leave: AllLeave, when: Due) -> None:
    """QR-6: the deadline is ten minutes after the latest deletionTimestamp by default."""
    assert due(rule, leave, DEFAULT.deadline) == when
