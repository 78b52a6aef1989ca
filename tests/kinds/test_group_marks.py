"""What a member of a pod group says, and the one line of each mistake that its pod alone shows: BG-n."""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.pod_group import marks
from support.kinds.groups import GROUP, ROLE, SETS, TOTAL, K

Json = dict[str, Any]
G = {GROUP: "g"}
THREE = {TOTAL: "3"}
INDEX, HASH, RETRIABLE = f"{K}pod-group-pod-index", f"{K}role-hash", f"{K}retriable-in-group"
COUNT = f"metadata.annotations[{TOTAL}]"
NUMBER = "must be a whole number from 1 to 4096: the pods of the group in all"


def test_a_member_says_all_that_its_group_counts() -> None:
    notes = {
        TOTAL: "3",
        f"{K}pod-group-fast-admission": "true",
        f"{K}pod-group-serving": "true",
        RETRIABLE: "false",
        HASH: "leader",
        SETS: "[]",
    }
    assert marks.read({**G, ROLE: "workers", INDEX: "2"}, notes) == marks.GroupMarks(
        group="g",
        total=3,
        fast=True,
        serving=True,
        retriable=False,
        role="workers",
        role_hash="leader",
        index=2,
        sets="[]",
    )


@pytest.mark.parametrize("text", ["", "0", "-1", "three", "3.0", "1099511627776", "4097", "\u0663", " 3", "1" * 5000])
def test_what_is_no_size_is_none(text: str) -> None:
    assert marks.read(G, {TOTAL: text}).total is None


def test_a_group_has_from_one_to_4096_pods() -> None:
    assert [marks.total_count(text) for text in ("1", "4096")] == [1, 4096]


SAID = [
    ("BG-1 a group without its size", G, {}, f"{COUNT}: Required value: has to be given together with the group's name"),
    ("BG-2 a size without a group", {}, THREE, f"metadata.labels[{GROUP}]: Required value: has to be given together with the group's size"),
    ("BG-2 a role without a group", {ROLE: "workers"}, {}, f"metadata.labels[{GROUP}]: Required value: is missing, and what the pod says of its group means nothing without it: name the group"),
    ("BG-3 a size of 0", G, {TOTAL: "0"}, f'{COUNT}: Invalid value: "0": {NUMBER}'),
    ("BG-3 a negative size", G, {TOTAL: "-3"}, f'{COUNT}: Invalid value: "-3": {NUMBER}'),
    ("BG-3 an empty size", G, {TOTAL: ""}, f'{COUNT}: Invalid value: "": {NUMBER}'),
    ("BG-3 a word", G, {TOTAL: "three"}, f'{COUNT}: Invalid value: "three": {NUMBER}'),
    ("BG-3 a fraction", G, {TOTAL: "3.0"}, f'{COUNT}: Invalid value: "3.0": {NUMBER}'),
    ("BG-3 2^40", G, {TOTAL: str(2**40)}, f'{COUNT}: Invalid value: "1099511627776": a group has at most 4096 pods: make several groups of them'),
    ("BG-4 more than 4,096", G, {TOTAL: "4097"}, f'{COUNT}: Invalid value: "4097": a group has at most 4096 pods: make several groups of them'),
    ("BG-5 no DNS subdomain", {GROUP: "G_"}, THREE, f'metadata.labels[{GROUP}]: Invalid value: "G_": must be a DNS subdomain: at most 253 lower-case letters, digits, \'-\' and \'.\', with a letter or digit at both ends of each part'),
    ("BG-10 another word than true and false", G, {**THREE, RETRIABLE: "no"}, f'metadata.annotations[{RETRIABLE}]: Invalid value: "no": must be `true` or `false`: write one of them'),
    ("BG-16 a role hash that names no pod set", G, {**THREE, HASH: "Leader_1"}, f"metadata.annotations[{HASH}]: Invalid value: \"Leader_1\": must be a DNS label, since a pod set is named so: at most 63 lower-case letters, digits and '-'; or leave it out, and it is set for you"),
    ("BG-17 a prebuilt name unlike the group's", {**G, f"{K}prebuilt-workload-name": "w"}, THREE, f'metadata.labels[{K}prebuilt-workload-name]: Invalid value: "w": must be equal to the group\'s name'),
    ("BG-20 an index that is no number", {**G, INDEX: "x"}, THREE, f'metadata.labels[{INDEX}]: Invalid value: "x": must be a whole number from 0 on: the pod\'s rank in its group'),
    ("BG-20 a negative index", {**G, INDEX: "-1"}, THREE, f'metadata.labels[{INDEX}]: Invalid value: "-1": must be a whole number from 0 on: the pod\'s rank in its group'),
    ("BG-20 an index at the size", {**G, INDEX: "3"}, THREE, f"metadata.labels[{INDEX}]: Invalid value: \"3\": must be below the group's size 3: ranks are 0 to 2"),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "notes", "line"), [pytest.param(*row[1:], id=row[0]) for row in SAID])
def test_a_mistake_is_told_with_field_rule_and_way_out(labels: Json, notes: Json, line: str) -> None:
    assert [str(error) for error in marks.problems(labels, notes)] == [line]


def test_bg_5_a_name_of_more_than_253_characters_is_none() -> None:
    (error,) = marks.problems({}, {**THREE, GROUP: "g" * 254})
    assert "at most 253" in error.text


@pytest.mark.parametrize(
    ("labels", "notes"),
    [
        pytest.param(G, THREE, id="a group with its size"),
        pytest.param({}, {**THREE, GROUP: "g" * 253}, id="a name in the annotation, as long as may be"),
        pytest.param({**G, ROLE: "workers"}, {}, id="a later pod of declared sets says no size"),
        pytest.param(G, {SETS: "[]"}, id="a driver says no size"),
        pytest.param({**G, INDEX: "2"}, THREE, id="the last index"),
        pytest.param({**G, f"{K}prebuilt-workload-name": "g"}, THREE, id="the group's own name as prebuilt"),
        pytest.param({}, {HASH: "a9f06f3a"}, id="a single pod with its hash"),
        pytest.param({}, {}, id="a single pod"),
    ],
)
def test_what_is_right_is_no_problem(labels: Json, notes: Json) -> None:
    assert marks.problems(labels, notes) == []
    assert marks.warnings(labels, notes) == []


def test_bg_6_of_label_and_annotation_that_disagree_the_annotation_counts_with_a_warning() -> None:
    labels, notes = {GROUP: "l"}, {**THREE, GROUP: "a"}
    assert marks.read(labels, notes).group == "a"
    assert marks.problems(labels, notes) == []
    assert marks.warnings(labels, notes) == [
        f"metadata.labels[{GROUP}]: says 'l' and is not read: the annotation of that name counts; leave one of them out"
    ]


def test_a_flag_of_another_word_is_off_with_a_warning() -> None:
    notes = {**THREE, f"{K}pod-group-serving": "yes"}
    assert not marks.read(G, notes).serving
    (line,) = marks.warnings(G, notes)
    assert line.endswith("'yes' means no: write `true`, or leave it out")


def test_what_is_shown_of_a_value_is_short_and_printable() -> None:
    (error,) = marks.problems(G, {TOTAL: "\x1b[31m" + "x" * 200_000})
    assert len(str(error)) < 400
    assert str(error).isprintable()
