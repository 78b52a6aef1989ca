"""Rotating the CA from the command line: no step cuts off an agent that has not heard of the one before."""

from __future__ import annotations

import datetime as dt
from copy import deepcopy
from typing import Any

import pytest

from gatelift.adapters import authority
from gatelift.adapters.authority_store import NAME, REFRESH_SECONDS
from gatelift.cli.authority import STEP_AT
from gatelift_kube.values.resources import SECRET, WORKER_CLUSTER
from gatelift_kube.values.timestamps import to_seconds, to_text
from support.manager.cli_stage import Stage

SYSTEM = "gatelift-system"
LONG_AGO, LATER = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
STEPS = ("switch", "retire")


def rotate(stage: Stage, step: str) -> None:
    """Take the step before `step`, and those before it, with no agents there."""
    state = authority.new_state(dt.datetime.now(dt.UTC))
    stage.server.put(SECRET, NAME, SYSTEM, data=state.to_secret())
    assert stage.run("ca", "announce").code == 0
    if step == "retire":
        assert stage.run("ca", "switch").code == 0


def cluster(stage: Stage, name: str, issued_at: str, *, key: str = "digest", revoked: bool = False) -> None:
    status = {"keyDigest": key, "certificateIssuedAt": issued_at}
    stage.server.put(WORKER_CLUSTER, name, "", spec={"revoked": revoked}, status=status)


def secret(stage: Stage) -> dict[str, Any]:
    found = stage.server.find(SECRET, NAME, SYSTEM)
    assert found is not None
    return deepcopy(found)


def step_at(stage: Stage) -> float:
    return to_seconds(secret(stage)["metadata"]["annotations"][STEP_AT])


@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_refused_while_an_agent_has_not_renewed_and_names_it(stage: Stage, step: str) -> None:
    rotate(stage, step)
    before = secret(stage)
    for name in ("w1", "w2", "w3", "w4", "w5"):
        cluster(stage, name, LONG_AGO if name != "w2" else LATER)
    said = stage.run("ca", step)
    assert said.code == 1
    assert said.line.startswith("gatelift: not renewed since the last step (20")
    assert "): w1, w3, w4 and 1 more; they would " in said.line
    assert said.line.endswith("or say --force and enrol them anew")
    assert secret(stage) == before


@pytest.mark.parametrize("step", STEPS)
def test_it_is_taken_once_all_have_renewed_after_every_replica_knew_of_the_step_before(stage: Stage, step: str) -> None:
    """HD-634: by its own clock. One that is five minutes ahead of the person's had handed out the bundle of before."""
    rotate(stage, step)
    known = step_at(stage) + 2 * REFRESH_SECONDS + authority.CLOCK_SKEW.total_seconds()
    cluster(stage, "w1", to_text(known - 1))
    assert stage.run("ca", step).code == 1
    cluster(stage, "w1", to_text(known))
    assert stage.run("ca", step).code == 0


@pytest.mark.parametrize("step", STEPS)
def test_who_has_no_certificate_or_was_revoked_is_not_waited_for(stage: Stage, step: str) -> None:
    rotate(stage, step)
    cluster(stage, "never-enrolled", "", key="")
    cluster(stage, "revoked", LONG_AGO, revoked=True)
    assert stage.run("ca", step).code == 0


@pytest.mark.parametrize("step", STEPS)
def test_a_person_may_go_on_without_them(stage: Stage, step: str) -> None:
    rotate(stage, step)
    cluster(stage, "gone-for-good", LONG_AGO)
    assert stage.run("ca", step, "--force").code == 0


@pytest.mark.parametrize("wrong", ["", "yesterday"])
def test_a_step_of_unknown_time_needs_a_persons_word(stage: Stage, wrong: str) -> None:
    rotate(stage, "switch")
    found = secret(stage)
    stage.server.put(SECRET, NAME, SYSTEM, data=found["data"], metadata={"annotations": {STEP_AT: wrong}})
    said = stage.run("ca", "switch")
    assert said.code == 1
    assert f"when the last step was taken (annotation {STEP_AT}: {wrong!r}); if all agents" in said.line
    assert stage.run("ca", "switch", "--force").code == 0
