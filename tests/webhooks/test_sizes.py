"""HD-252: an object of a queue keeps room for what has to be written to it, whoever fills it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift.webhooks import review, sizes
from gatelift_kinds.shared.review import Verdict

Json = dict[str, Any]
QUEUED, OF_A_RUN = {"kueue.x-k8s.io/queue-name": "q"}, {"gatelift.dev/origin": "o"}
FULL = sizes.OBJECT_BYTES_MAX
EMPTY = 200
"""Bytes that an object of these tests has besides its text, at most."""


def an_object(size: int, labels: dict[str, str] | None = None) -> Json:
    labels = QUEUED if labels is None else labels
    return {"metadata": {"name": "x", "labels": labels}, "spec": {"containers": [{"image": "i" * (size - EMPTY)}]}}


def asked(new: Json, old: Json | None = None, kind: str = "Pod") -> Verdict:
    request: Json = {"uid": "u", "kind": {"kind": kind}, "namespace": "ns", "object": new}
    request |= {"operation": "UPDATE", "oldObject": old} if old is not None else {"operation": "CREATE"}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return sizes.verdict(review.read(json.dumps(body).encode()))


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("labels", [QUEUED, OF_A_RUN], ids=["of a queue", "of a run"])
@pytest.mark.parametrize("before", [None, 1000, FULL], ids=["made so", "grown", "grown from just fitting"])
def test_hd_252_what_leaves_no_room_is_refused(kind: str, labels: dict[str, str], before: int | None) -> None:
    old = an_object(before, labels) if before is not None else None
    (error,) = asked(an_object(FULL + EMPTY + 1, labels), old, kind).errors
    assert str(error).startswith(f"{kind}: Forbidden: with ")
    assert f"larger than the {FULL} that" in str(error)
    assert "put them into a ConfigMap" in str(error)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        pytest.param(an_object(FULL), None, id="made with room"),
        pytest.param(an_object(FULL), an_object(1000), id="grown with room"),
        pytest.param(an_object(2 * FULL), an_object(2 * FULL), id="large before, and no larger"),
        pytest.param(an_object(2 * FULL), an_object(3 * FULL), id="smaller than it was"),
        pytest.param(an_object(2 * FULL, {}), None, id="in no queue"),
        pytest.param(an_object(2 * FULL, {}), an_object(1000, {}), id="in no queue, and grown"),
    ],
)
def test_hd_252_what_keeps_its_room_or_is_not_ours_passes(new: Json, old: Json | None) -> None:
    assert asked(new, old) == Verdict()


def test_hd_252_who_takes_the_queues_name_off_fills_nothing_by_that() -> None:
    assert not asked(an_object(2 * FULL, {}), an_object(1000)).allowed
