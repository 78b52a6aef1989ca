"""What the webhook sets on a pod of a group and refuses of it, with the text that a person reads: BG-n."""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatelift_kinds.pod_group.reviewed import ReviewedMember
from gatelift_kinds.registry import POD_KIND
from support.kinds.groups import GROUP, ROLE, SETS, TOTAL, K
from support.manager.webhook_documents import FACTS, GATED, Json, Q, a_pod, defaulted, told

MEMBER = ReviewedMember()
G = {**Q, GROUP: "g"}
THREE = {TOTAL: "3"}
HASH, RETRIABLE = f"{K}role-hash", f"{K}retriable-in-group"
INDEX, INDEX_LABEL = f"{K}pod-group-pod-index", f"{K}pod-group-pod-index-label"
HOLDS_QUOTA = replace(FACTS, reserved_by="g")
STORY = '[{"name":"driver","count":1},{"name":"workers","count":10,"template":{"spec":{"containers":[{"name":"w"}]}}}]'


def test_a_member_is_taken_over_as_a_single_pod_is() -> None:
    made = defaulted(MEMBER, a_pod(G, THREE), FACTS)
    assert made == defaulted(POD_KIND, a_pod(G, THREE), FACTS)
    assert made["metadata"]["annotations"][HASH] == "a9f06f3a"
    assert MEMBER.defaults(made, FACTS) == ()


def test_the_rank_is_copied_from_the_label_that_an_annotation_names_and_one_that_is_there_stays() -> None:
    notes = {**THREE, INDEX_LABEL: "rank"}
    assert defaulted(MEMBER, a_pod({**G, "rank": "2"}, notes), FACTS)["metadata"]["labels"][INDEX] == "2"
    assert defaulted(MEMBER, a_pod({**G, "rank": "2", INDEX: "1"}, notes), FACTS)["metadata"]["labels"][INDEX] == "1"
    assert INDEX not in defaulted(MEMBER, a_pod(G, notes), FACTS)["metadata"]["labels"]


def test_who_is_in_no_queue_is_left_alone() -> None:
    assert MEMBER.defaults(a_pod({GROUP: "g", "rank": "2"}, {**THREE, INDEX_LABEL: "rank"}), FACTS) == ()


CREATED = [
    ("BG-1 a group without its size", G, {}, {}, f"metadata.annotations[{TOTAL}]: Required value: has to be given together with the group's name"),
    ("BG-4 more than 4,096", G, {TOTAL: "4097"}, {}, f'metadata.annotations[{TOTAL}]: Invalid value: "4097": a group has at most 4096 pods: make several groups of them'),
    ("BG-26 the document's own role beside its sets", {**G, ROLE: "worker"}, {SETS: STORY}, {}, f'metadata.labels[{ROLE}]: Invalid value: "worker": is declared by no set of {SETS}: did you mean workers?'),
    ("BG-28 a sum unlike the size", G, {SETS: STORY, TOTAL: "3"}, {}, f'metadata.annotations[{TOTAL}]: Invalid value: "3": must be the sum 11 of the counts in {SETS}: write that, or leave it out'),
    ("BG-31 elastic", G, {**THREE, f"{K}elastic-job": "true"}, {}, f"metadata.annotations[{K}elastic-job]: Forbidden: is not supported for pods: use it on a Job or a RayCluster"),
    ("BG-32 bound already", G, THREE, {"nodeName": "n1"}, "spec.nodeName: Forbidden: names a node, and a pod of a group gets one after the group is admitted: use nodeSelector or affinity"),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "notes", "spec", "line"), [pytest.param(*row[1:], id=row[0]) for row in CREATED])
def test_a_new_member_is_refused(labels: Json, notes: Json, spec: Json, line: str) -> None:
    assert told(MEMBER.validate_create(a_pod(labels, notes, **GATED, **spec), FACTS)) == [line]


@pytest.mark.parametrize(
    ("labels", "notes"),
    [
        pytest.param(G, THREE, id="PG-1 the document's story 2"),
        pytest.param(G, {SETS: STORY}, id="DW-1 a driver"),
        pytest.param({**G, ROLE: "workers"}, {}, id="DW-1 a later pod"),
        pytest.param({**Q}, {GROUP: "g", **THREE}, id="its name in an annotation"),
    ],
)
def test_a_new_member_is_accepted(labels: Json, notes: Json) -> None:
    verdict = MEMBER.validate_create(a_pod(labels, notes, **GATED), FACTS)
    assert (told(verdict), verdict.warnings) == ([], ())


def test_bg_6_a_label_beside_another_annotation_is_warned_of_once() -> None:
    pod = a_pod({**Q, GROUP: "l"}, {GROUP: "a", **THREE}, **GATED)
    (line,) = MEMBER.validate_create(pod, FACTS).warnings
    assert "is not read: the annotation of that name counts" in line
    assert MEMBER.validate_update(pod, pod, FACTS).warnings == ()


def updated(before: tuple[Json, Json], after: tuple[Json, Json], facts: Any = FACTS, **spec: Any) -> list[str]:
    old, new = (a_pod(labels, notes, **(spec or GATED)) for labels, notes in (before, after))
    return told(MEMBER.validate_update(old, new, facts))


IMMUTABLE = "is immutable once set: make a new pod instead"
CHANGED = [
    ("BG-7 another group", (G, THREE), ({**G, GROUP: "h"}, THREE), f'metadata.labels[{GROUP}]: Invalid value: "h": {IMMUTABLE}'),
    ("BG-9 the mark that nobody replaces it taken back", (G, {**THREE, RETRIABLE: "false"}), (G, THREE), f"metadata.annotations[{RETRIABLE}]: Forbidden: an unretriable pod cannot become retriable: keep it false"),
    ("BG-10 another word", (G, THREE), (G, {**THREE, RETRIABLE: "no"}), f'metadata.annotations[{RETRIABLE}]: Invalid value: "no": must be `true` or `false`: write one of them'),
    ("BG-3 a size that is none", (G, THREE), (G, {TOTAL: "0"}), f'metadata.annotations[{TOTAL}]: Invalid value: "0": must be a whole number from 1 to 4096: the pods of the group in all'),
    ("another role hash", (G, {**THREE, HASH: "a"}), (G, {**THREE, HASH: "b"}), f'metadata.annotations[{HASH}]: Invalid value: "b": is immutable, it is the pod\'s role: make a new pod'),
    ("HD-421 another pod set", ({**G, f"{K}podset": "a"}, THREE), ({**G, f"{K}podset": "b"}, THREE), f'metadata.labels[{K}podset]: Invalid value: "b": is immutable, it says as what the pod was let go: make a new pod'),
    ("HD-421 none any more", ({**G, f"{K}podset": "a"}, THREE), (G, THREE), f'metadata.labels[{K}podset]: Invalid value: "": is immutable, it says as what the pod was let go: make a new pod'),
    ("HD-421 no group any more", (G, THREE), (Q, {}), f'metadata.labels[{GROUP}]: Invalid value: "": {IMMUTABLE}'),
    ("another role", ({**G, ROLE: "a"}, {}), ({**G, ROLE: "b"}, {}), f'metadata.labels[{ROLE}]: Invalid value: "b": is immutable, it is the pod\'s role: make a new pod'),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "line"), [pytest.param(*row[1:], id=row[0]) for row in CHANGED])
def test_a_change_of_a_member_is_refused(before: tuple[Json, Json], after: tuple[Json, Json], line: str) -> None:
    assert updated(before, after) == [line]


def test_what_a_driver_declares_is_declared_once() -> None:
    (line,) = updated((G, {SETS: STORY}), (G, {SETS: STORY.replace("10", "11")}))
    assert line.startswith(f"metadata.annotations[{SETS}]: Invalid value: ")
    assert line.endswith("is immutable, the Workload was made of them: make a new pod")


def test_bg_8_the_size_may_change_while_the_group_waits_and_holds_no_quota() -> None:
    before, after = (G, THREE), (G, {TOTAL: "4"})
    assert updated(before, after) == []
    late = f'metadata.annotations[{TOTAL}]: Invalid value: "4": is immutable once the group runs, or its Workload holds quota: make a new group'
    assert updated(before, after, HOLDS_QUOTA) == [late]
    assert updated(before, after, schedulingGates=[]) == [late]


@pytest.mark.parametrize("key", ["pod-group-serving", "pod-group-fast-admission"])
def test_hd_421_how_a_group_is_admitted_and_ends_may_change_while_it_waits(key: str) -> None:
    before, after = (G, THREE), (G, {**THREE, f"{K}{key}": "true"})
    assert updated(before, after) == updated(after, before) == []
    late = f'metadata.annotations[{K}{key}]: Invalid value: "true": is immutable once the group runs, or its Workload holds quota: make a new group'
    assert updated(before, after, HOLDS_QUOTA) == updated(before, after, schedulingGates=[]) == [late]
    assert updated(after, before, HOLDS_QUOTA) == [late.replace('"true"', '""')]


HD_482: list[tuple[Json, Json, str]] = [
    (G, {SETS: STORY, TOTAL: "11"}, f"metadata.annotations[{SETS}]"),
    ({**G, ROLE: "driver"}, {TOTAL: "11"}, f"metadata.labels[{ROLE}]"),
]


@pytest.mark.parametrize(("labels", "notes", "path"), HD_482)
def test_hd_482_sets_and_a_role_of_them_are_given_while_the_group_waits_and_not_once_it_has_quota(
    labels: Json, notes: Json, path: str
) -> None:
    before, after = (G, {TOTAL: "11"}), (labels, notes)
    assert updated(before, after) == []
    for late in (updated(before, after, HOLDS_QUOTA), updated(before, after, schedulingGates=[])):
        assert [line.startswith(f"{path}: Invalid value: ") for line in late] == [True]
        assert late[0].endswith("cannot be given once the group runs, or its Workload holds quota: make a new group")


@pytest.mark.parametrize("key", ["priority-class", "max-exec-time-seconds"])
def test_hd_482_what_a_member_says_that_counts_when_its_group_waits_again_is_warned_of(key: str) -> None:
    """It was taken without a word, and nothing followed."""
    before, after = (a_pod(labels, THREE, **GATED) for labels in (G, {**G, f"{K}{key}": "5"}))
    assert MEMBER.validate_update(before, after, FACTS).warnings == ()
    assert MEMBER.depends_on_quota(before, after)
    verdict = MEMBER.validate_update(before, after, HOLDS_QUOTA)
    (line,) = verdict.warnings
    assert told(verdict) == []
    assert line.startswith(
        f"metadata.labels[{K}{key}]: is read when the group waits for quota, and its Workload g has it"
    )
    assert line.endswith("deactivate that (spec.active: false), and say the same on each pod of the group")


@pytest.mark.parametrize("spec", [GATED, {"schedulingGates": []}], ids=["it waits", "it runs"])
def test_hd_336_a_pod_that_was_queued_by_itself_joins_no_group(spec: Json) -> None:
    """PW-068 lets it; here a pod's Workload is told by its kind, and that by whether it names a group."""
    queued, joined = ({**labels, f"{K}managed": "true"} for labels in (Q, G))
    old, new = a_pod(queued, {}, **spec), a_pod(joined, THREE, **spec)
    assert told(POD_KIND.validate_update(old, new, FACTS)) == [
        f'metadata.labels[{GROUP}]: Invalid value: "g": cannot be given to a pod that was queued by itself: leave it out, or make a new pod'
    ]


def test_pw_068_a_pod_that_nobody_took_over_may_be_given_a_group() -> None:
    assert told(POD_KIND.validate_update(a_pod({}), a_pod({GROUP: "g"}, THREE), FACTS)) == []


def test_pg_13_a_member_may_be_made_unretriable_at_any_time() -> None:
    assert updated((G, THREE), (G, {**THREE, RETRIABLE: "false"}), HOLDS_QUOTA, schedulingGates=[]) == []


def test_the_same_name_may_move_from_label_to_annotation() -> None:
    assert updated((G, THREE), (Q, {GROUP: "g", **THREE})) == []


def test_what_was_wrong_before_anybody_could_refuse_it_does_not_keep_a_member_from_ending() -> None:
    wrong = {TOTAL: "0", SETS: "nonsense"}
    assert updated((G, wrong), ({**G, "other": "x"}, wrong)) == []


def test_the_same_name_may_be_said_by_the_annotation_as_well_and_another_one_may_not() -> None:
    old = a_pod(G, THREE, **GATED)
    for name, answered in (("g", 0), ("h", 1)):
        new = a_pod({}, {**THREE, f"{K}pod-group-name": name}, **GATED)
        assert len(told(MEMBER.validate_update(old, new, FACTS))) == answered
