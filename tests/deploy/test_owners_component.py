"""The component with which the webhooks may read who owns a pod's owner."""

from __future__ import annotations

from pathlib import Path

import yaml

from gatelift_kinds.shared import unserved

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_pg_24_the_webhooks_may_read_what_they_walk_over_and_write_nothing_but_events() -> None:
    access = list(yaml.safe_load_all((DEPLOY / "components" / "owners" / "access.yaml").read_text()))
    (role,) = [one for one in access if one["kind"] == "ClusterRole"]
    (binding,) = [one for one in access if one["kind"] == "ClusterRoleBinding"]
    assert [one["name"] for one in binding["subjects"]] == ["gatelift-webhooks"]
    granted = {
        (group, each): rule["verbs"]
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for each in rule["resources"]
    }
    assert granted.pop(("events.k8s.io", "events")) == ["create", "patch"]
    assert set(granted) == {*((each.group, each.plural) for each in unserved.MAKERS), ("", "pods")}
    assert all(verbs == ["get"] for verbs in granted.values())
    assert "#   - ../../components/owners" in (DEPLOY / "overlays" / "management" / "kustomization.yaml").read_text()
