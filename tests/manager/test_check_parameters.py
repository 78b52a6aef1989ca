"""What an AdmissionCheck's parameters name: a MultiKueueConfig, or nothing that we serve."""

from __future__ import annotations

import pytest

from gatelift.core.records.knowledge import Knowledge
from gatelift_kube.objects.kueue import AdmissionCheck, AdmissionCheckParameters, AdmissionCheckSpec, MultiKueueConfig

KUEUE = "kueue.x-k8s.io"


@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        pytest.param(AdmissionCheckParameters(KUEUE, "MultiKueueConfig", "all"), True, id="a MultiKueueConfig"),
        pytest.param(AdmissionCheckParameters(KUEUE, "ProvisioningRequestConfig", "all"), False, id="another kind"),
        pytest.param(AdmissionCheckParameters("x.io", "MultiKueueConfig", "all"), False, id="another group"),
        pytest.param(AdmissionCheckParameters(KUEUE, "MultiKueueConfig", "other"), False, id="one that is not there"),
        pytest.param(None, False, id="nothing"),
    ],
)
def test_is_40_a_check_names_its_clusters_by_a_multikueueconfig(
    parameters: AdmissionCheckParameters | None, found: bool
) -> None:
    known = Knowledge(configs={"all": MultiKueueConfig()})
    check = AdmissionCheck(spec=AdmissionCheckSpec(controller_name=f"{KUEUE}/multikueue", parameters=parameters))
    assert (known.config_of(check) is not None) is found
