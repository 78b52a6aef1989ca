"""HD-85: the mark that a Job's pods carry, and that nobody can take off them."""

from __future__ import annotations

import json
import re

import pytest

from gatelift_kinds.registry import JOB_KIND as KIND
from gatelift_kinds.shared import placed_mark
from gatelift_kinds.shared.placed_mark import Mark
from gatelift_kinds.shared.values import Placing
from gatelift_kube.objects.core import Toleration
from gatelift_wire.values.keys import PlacementKey
from support.manager.kind_objects import KEY, Json, a_job, job, patched, raw

UID = "0b6b2c38-6b0a-4c1e-9a5e-3a6f0a1b2c3d"
PLACING = Placing(key=KEY, origin="home", namespace="ns")
QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
OURS = {"key": "home.placed-as.gatelift.dev/j", "operator": "Equal", "value": "wl-uid.3", "effect": "NoSchedule"}
STALE = {"key": "home.placed-as.gatelift.dev/other", "operator": "Equal", "value": "wl.9", "effect": "NoSchedule"}
OWN = {"key": "own", "operator": "Exists"}


def tolerations(document: Json) -> list[Json]:
    found: list[Json] = document["spec"]["template"]["spec"].get("tolerations", [])
    return found


def with_tolerations(*wanted: Json) -> Json:
    document = a_job()
    document["spec"]["template"]["spec"]["tolerations"] = list(wanted)
    return document


@pytest.mark.parametrize("job_uid", ["", UID])
def test_hd_85_a_mark_is_read_as_it_was_written_and_fits_into_a_toleration(job_uid: str) -> None:
    key = PlacementKey(UID, 10**17)
    (made,) = placed_mark.toleration(Placing(key=key, origin=UID, namespace="ns"), "j" * 63, job_uid)
    prefix, _, name = made.key.partition("/")
    assert placed_mark.read([Toleration(key="gpu"), made]) == (Mark(UID, key, "j" * 63, job_uid),)
    assert len(prefix) <= 253
    assert max(len(name), len(made.value)) <= 63
    assert all(QUALIFIED.fullmatch(text) for text in (name, made.value))
    assert (made.operator, made.effect) == ("Equal", "NoSchedule")


@pytest.mark.parametrize(
    ("uid", "origin", "name"),
    [("w" * 62, "home", "j"), ("w", "ho.me", "j"), ("w", "home", "j" * 64), ("w", "h" * 250, "j")],
)
def test_what_has_no_room_is_not_marked(uid: str, origin: str, name: str) -> None:
    assert placed_mark.toleration(Placing(key=PlacementKey(uid, 1), origin=origin, namespace="ns"), name) == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gpu", "w.1"),
        ("placed-as.gatelift.dev/j", "w.1"),
        ("home.placed-as.gatelift.dev", "w.1"),
        ("home.placed-as.gatelift.dev/", "w.1"),
        ("home.placed-as.gatelift.dev/j", ""),
        ("home.placed-as.gatelift.dev/j", "w"),
        ("home.placed-as.gatelift.dev/j", ".1"),
        ("home.placed-as.gatelift.dev/j", "w.0"),
        ("home.placed-as.gatelift.dev/j", "w.-1"),
        ("home.placed-as.gatelift.dev/j", "w.\u0663"),
        ("home.placed-as.gatelift.dev/j", "w." + "1" * 19),
    ],
)
def test_what_others_write_is_no_mark(key: str, value: str) -> None:
    assert placed_mark.read([Toleration(key=key, operator="Equal", value=value)]) == ()


def test_no_more_marks_are_read_than_anybody_needs() -> None:
    many = [Toleration(key=f"home.placed-as.gatelift.dev/j{number}", value="w.1") for number in range(100)]
    assert len(placed_mark.read(many)) == placed_mark.MARKS_MAX


def test_a_mark_that_is_too_long_to_be_kept_is_read_as_any_other() -> None:
    uid = "w" * (placed_mark.KEPT_CHARS_MAX + 1)
    (mark,) = placed_mark.read([Toleration(key="home.placed-as.gatelift.dev/j", value=f"{uid}.7")])
    assert mark == Mark("home", PlacementKey(uid, 7), "j", "")


def test_hd_85_the_pods_of_a_placed_job_are_marked_once_and_keep_their_users_tolerations() -> None:
    user = with_tolerations(OWN, STALE)
    (part,) = KIND.parts(job(user), raw(user))
    assert tolerations(json.loads(KIND.document(part, PLACING))) == [OWN, OURS]


def test_at_home_the_template_is_marked_with_the_jobs_uid_too_and_put_back() -> None:
    user = with_tolerations(STALE)
    after = patched(user, KIND.local_lift_patch(job(user), raw(user), PLACING))
    (mark,) = placed_mark.read(job(after).spec.template.spec.tolerations)
    noted = placed_mark.digest(after["metadata"]["annotations"]["gatelift.dev/template-before"])
    assert mark == Mark("home", KEY, "j", user["metadata"]["uid"], noted)
