"""The component that keeps gates and sizes of elastic Jobs: in no overlay as long as elastic Jobs are not served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from gatelift_kinds.shared import markers
from gatelift_kinds.shared.sized_pods import INDEX
from gatelift_wire.values.keys import ANNOTATION_CHAIN, ANNOTATION_SIZE, LABEL_ORIGIN

DEPLOY = Path(__file__).parents[2] / "deploy"
FOLDER = DEPLOY / "components" / "elastic-jobs"


def policies() -> dict[str, Any]:
    found = yaml.safe_load_all((FOLDER / "policies.yaml").read_text())
    bound = {one["spec"]["policyName"]: one for one in found if one["kind"].endswith("Binding")}
    found = yaml.safe_load_all((FOLDER / "policies.yaml").read_text())
    named = {one["metadata"]["name"]: one["spec"] for one in found if not one["kind"].endswith("Binding")}
    assert bound.keys() == named.keys()
    assert all(one["spec"]["validationActions"] == ["Deny"] for one in bound.values())
    return named


def test_sl_06_nobody_but_gatelift_takes_the_gate_off_a_pod_of_a_run_or_moves_it_to_another_slot() -> None:
    """A Job controller's own pods are let through: it makes them gated, and their making is not asked about."""
    spec = policies()["gatelift-elastic-pods"]
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["UPDATE"], ["pods"])
    conditions = {one["name"]: one["expression"] for one in spec["matchConditions"]}
    assert "system:serviceaccounts:gatelift-system" in conditions["not-gatelift"]
    assert f"'{LABEL_ORIGIN}'" in conditions["of-a-run"], "whose gate it is elsewhere is its user's business"
    gate, slot = (one["expression"] for one in spec["validations"])
    assert gate.count(f"g.name == '{markers.ELASTIC_JOB}'") == 2
    assert f"'{markers.POD_SET}'" in slot
    assert f"'{INDEX}'" in slot
    assert all("Gatelift" in one["message"] or "leave" in one["message"] for one in spec["validations"])


def test_sl_06_nobody_but_gatelift_says_to_which_size_a_job_was_set() -> None:
    spec = policies()["gatelift-elastic-sizes"]
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["CREATE", "UPDATE"], ["jobs", "jobs/status"])
    (asked,) = (one["expression"] for one in spec["matchConditions"] if one["name"] == "sized")
    assert f"'{ANNOTATION_SIZE}'" in asked


def test_hd_707_nobody_but_gatelift_says_of_which_chain_a_slice_is() -> None:
    spec = policies()["gatelift-elastic-slices"]
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["UPDATE"], ["workloads", "workloads/status"])
    (compared,) = (one["expression"] for one in spec["validations"])
    marks = {ANNOTATION_CHAIN, ANNOTATION_SIZE, markers.ELASTIC_JOB, markers.SLICE_NAME, markers.SLICE_REPLACEMENT}
    assert all(f"'{mark}'" in compared for mark in marks)


def test_sl_03_no_overlay_has_the_component_yet() -> None:
    for file in sorted(DEPLOY.glob("overlays/*/kustomization.yaml")):
        assert "elastic" not in file.read_text()
