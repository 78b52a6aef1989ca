"""Which pod set a pod of a group is of that runs at a worker, where it says one that its Workload does not have."""

from __future__ import annotations

import pytest

from gatelift_kinds.pod_group.let_go import LetGo
from gatelift_kinds.shared.json_parts import Json
from gatelift_kube.objects.core import Container, PodSpec, PodTemplate, ResourceRequirements
from gatelift_kube.objects.kueue import PodSet


def asking(cpu: str) -> PodSpec:
    resources = ResourceRequirements(requests={"cpu": cpu})
    return PodSpec(containers=(Container(name="c", resources=resources),))


def knowing(**cpus: str) -> LetGo:
    """Return what knows of pod sets that ask for so much for each pod."""
    found = LetGo()
    found.learn(tuple(PodSet(name=name, count=2, template=PodTemplate(spec=asking(cpu))) for name, cpu in cpus.items()))
    return found


SPEC: Json = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}


@pytest.mark.parametrize(
    ("pod_sets", "said", "is_of"),
    [
        ({"big": "500m", "small": "250m"}, "small", "small"),
        ({"big": "500m", "small": "250m"}, "other", "big"),
        ({"big": "0.5", "small": "250m"}, "other", "big"),
        ({"big": "500m", "twin": "500m"}, "other", ""),
        ({"only": "1"}, "other", "only"),
        ({"big": "1", "small": "250m"}, "other", ""),
    ],
)
def test_hd_437_it_is_of_the_set_that_it_says_or_that_alone_asks_for_the_same(
    pod_sets: dict[str, str], said: str, is_of: str
) -> None:
    assert knowing(**pod_sets).likely(("shape", said), SPEC) == is_of
