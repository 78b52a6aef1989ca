"""Which pods are queued, as the configuration says (KEP-976, PG-24): `podOptions`, and `frameworks` without `pod`."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.config import Configuration
from gatelift.webhooks.app import settings_of
from gatelift.webhooks.surroundings import Surroundings
from gatelift_kinds.shared import pod_review
from gatelift_kinds.shared.review import WebhookFacts
from gatelift_kube.objects.meta import LabelSelector

POD = {"metadata": {"name": "p", "labels": {"kueue.x-k8s.io/queue-name": "q"}}, "spec": {"containers": []}}
BOTH = {
    "podOptions": {
        "podSelector": {"matchLabels": {"team": "a"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "lab"}},
    }
}


def takes(integrations: dict[str, Any], namespace: str, **labels: str) -> bool:
    settings = settings_of(Configuration.model_validate({"integrations": integrations}))
    surroundings = Surroundings(
        namespace_selector=LabelSelector(),
        manage_without_queue=False,
        default_priority_class=False,
        pods=settings.pods,
    )
    return surroundings.takes_pod(namespace, labels)


@pytest.mark.parametrize(
    ("namespace", "labels", "taken"),
    [
        pytest.param("lab", {"team": "a"}, True, id="both match"),
        pytest.param("lab", {"team": "b"}, False, id="the pod does not"),
        pytest.param("lab", {}, False, id="the pod says nothing"),
        pytest.param("shop", {"team": "a"}, False, id="the namespace does not"),
    ],
)
def test_pg_24_both_selectors_have_to_match(namespace: str, labels: dict[str, str], taken: bool) -> None:
    assert takes(BOTH, namespace, **labels) is taken


def test_pg_24_without_selectors_every_pod_may_be_queued() -> None:
    assert takes({}, "lab")
    assert takes({"podOptions": {}}, "lab", team="b")


def test_pg_24_frameworks_without_pod_switch_pods_off() -> None:
    assert not takes({"frameworks": ["batch/job"]}, "lab")
    assert takes({"frameworks": ["pod"]}, "lab")
    assert Configuration.model_validate({"integrations": {"frameworks": ["batch/job"]}}).without_effect() == ()


@pytest.mark.parametrize("taken", [True, False])
def test_pg_24_a_pod_that_is_not_selected_is_left_as_it_is(*, taken: bool) -> None:
    operations = pod_review.defaults(POD, WebhookFacts(pod_taken=taken))
    assert bool(operations) is taken
