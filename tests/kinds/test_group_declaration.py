"""The sets that a driver declares (KEP-976, story 3): what is read, and the one line of each mistake: BG-n."""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import json

import pytest

from gatelift_kinds.pod_group import declaration
from gatelift_kinds.pod_group.declaration import DeclaredSet, declared, undeclared
from gatelift_kinds.pod_group.marks import read
from gatelift_kinds.pod_group.yaml_text import YAML_CHARS_MAX, UnreadableTextError
from gatelift_kinds.pod_group.yaml_text import read as read_text
from support.kinds.groups import GROUP, ROLE, SETS, TOTAL

PATH = f"metadata.annotations[{SETS}]"
STORY = """
- name: driver
  count: 1
- name: workers
  count: 10
  template:
    spec:
      containers:
      - name: worker
        resources:
          requests:
            cpu: 1m
"""
AS_JSON = """[{"count": 1, "name": "driver", "template": {}},
 {"count": 10, "name": "workers",
  "template": {"spec": {"containers": [{"name": "worker", "resources": {"requests": {"cpu": "1m"}}}]}}}]"""
KEPS_OWN = """[
  {
    name: driver,
    count: 1,
  },
  {
    name: workers,
    count: 10,
    template:
      spec:
        containers:
          - name: worker
            requests:
              cpu: 1m
  }
]"""
WORKER = '{"name": "w", "count": 2, "template": {"spec": {"containers": [{"name": "c"}]}}}'


def lines(text: str, labels: dict[str, str] | None = None, total: str | None = None) -> list[str]:
    notes = {SETS: text} | ({TOTAL: total} if total is not None else {})
    return [str(error) for error in declaration.problems(read({GROUP: "g", **(labels or {})}, notes), total)]


def test_dw_1_sets_are_read_from_yaml_and_from_json_alike() -> None:
    found = declared(STORY).declaration
    assert found is not None
    assert [(each.name, each.count, each.template is None) for each in found.sets] == [
        ("driver", 1, True),
        ("workers", 10, False),
    ]
    again = declared(AS_JSON).declaration
    assert again == found
    assert again is not None
    assert again.digest == found.digest
    assert found.total == 11


def test_the_set_without_a_template_is_the_driver_unless_it_says_another() -> None:
    found = declared(STORY).declaration
    assert found is not None
    assert (found.own(""), found.own("workers")) == ("driver", "workers")
    assert lines(STORY) == lines(STORY, {ROLE: "driver"}) == []


MISTAKES = [
    ("BG-21 no YAML", "- name: }", f"{PATH}: Invalid value: is neither YAML nor JSON in line 1: mend it there; inside of [] and {{}} all that follows has to be in such brackets, too"),
    ("BG-21 the document's own example, which is no YAML", KEPS_OWN, f"{PATH}: Invalid value: is neither YAML nor JSON in line 10: mend it there; inside of [] and {{}} all that follows has to be in such brackets, too"),
    ("BG-21 more YAML than is read", "- name: " + "x" * YAML_CHARS_MAX, f"{PATH}: Invalid value: is no JSON, and YAML is read up to 16384 characters: write it as JSON"),
    ("BG-22 a mapping", "name: driver", f"{PATH}: Invalid value: must be a list of sets, each with name, count and template: write one set on each item '- name: ...'"),
    ("BG-22 nothing", " ", f"{PATH}: Invalid value: must be a list of sets, each with name, count and template: write one set on each item '- name: ...'"),
    ("BG-22 an empty list", "[]", f"{PATH}: Invalid value: must be a list of sets, each with name, count and template: write one set on each item '- name: ...'"),
    ("BG-22 a set that is a word", "[driver]", f"{PATH}[0]: Invalid value: must be a mapping with name, count and template: write `name: workers` under it"),
    ("BG-23 no name", "[{count: 1}]", f"{PATH}[0].name: Required value: each set needs a name, by which later pods say their role"),
    ("BG-23 a name that is none", "[{name: W_, count: 1}]", f"{PATH}[0].name: Invalid value: \"W_\": must be a DNS label: at most 63 lower-case letters, digits, '-'"),
    ("BG-23 twice the same name", f'[{{"name": "w", "count": 1}}, {WORKER}]', f'{PATH}: Invalid value: "w": names two sets: give each a name of its own, or add their counts up'),
    ("BG-23 a count of 0", "[{name: a, count: 0}]", f'{PATH}[0].count: Invalid value: "0": must be a whole number from 1 to 4096, without quotes'),
    ("BG-23 no count", "[{name: a}]", f"{PATH}[0].count: Required value: each set needs the number of its pods"),
    ("BG-23 a count in quotes", '[{name: a, count: "3"}]', f'{PATH}[0].count: Invalid value: "3": must be a whole number from 1 to 4096, without quotes'),
    ("BG-23 a count that is true", "[{name: a, count: true}]", f'{PATH}[0].count: Invalid value: "true": must be a whole number from 1 to 4096, without quotes'),
    ("BG-4 more pods in all than a group has", f"[{{name: a, count: 4096}}, {WORKER}]", f"{PATH}: Invalid value: declares 4098 pods, a group has at most 4096: make several groups"),
    ("BG-15 nineteen sets", json.dumps([{"name": f"s{n}", "count": 1} for n in range(19)]), f"{PATH}: Invalid value: declares 19 sets, a Workload has at most 18: join those that ask for the same"),
    ("BG-24 two empty templates", "[{name: a, count: 1}, {name: b, count: 1, template: {spec: {}}}]", f"{PATH}: Invalid value: a and b have no template, and only one set may stand for this pod: write the other"),
    ("BG-25 requests beside resources", "[{name: d, count: 1}, {name: w, count: 1, template: {spec: {containers: [{name: c, requests: {cpu: 1m}}]}}}]", f"{PATH}[1].template.spec.containers[0].requests: Invalid value: is no field of a container: write it under `resources`, as resources.requests"),
    ("a field that no set has", "[{name: d, count: 1, minCount: 1}]", f"{PATH}[0].minCount: Invalid value: is no field of a set: use name, count and template"),
    ("a template without a spec", "[{name: d, count: 1, template: {containers: []}}]", f"{PATH}[0].template: Invalid value: must be a pod template: write `spec:` with its containers under it"),
    ("a template without containers", "[{name: d, count: 1, template: {spec: {nodeSelector: {a: b}}}}]", f"{PATH}[0].template.spec.containers: Required value: a pod has at least one container: write what it requests"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line"), [pytest.param(*row[1:], id=row[0]) for row in MISTAKES])
def test_a_mistake_is_told_with_field_rule_and_way_out(text: str, line: str) -> None:
    assert lines(text) == [line]


def test_a_template_of_other_types_is_none() -> None:
    (line,) = lines("[{name: d, count: 1, template: {spec: {containers: [{name: c}], nodeSelector: [a]}}}]")
    assert "is no pod template (" in line
    assert "$.spec.nodeSelector" in line


def test_bg_26_the_documents_own_role_has_a_hint() -> None:
    assert lines(STORY, {ROLE: "worker"}) == [
        f'metadata.labels[{ROLE}]: Invalid value: "worker": is declared by no set of {SETS}: did you mean workers?'
    ]


def test_bg_27_a_role_without_a_declaration_names_those_that_have_one() -> None:
    found = declared(STORY).declaration
    assert found is not None
    assert undeclared("ps", found) == f"is declared by no set of {SETS}: use one of driver, workers"


def test_a_driver_of_no_set_says_which_is_its_own() -> None:
    assert lines(f"[{WORKER}]") == [
        (
            f"metadata.labels[{ROLE}]: Required value: each declared set has a template, and none says which is this pod's: "
            "name its set"
        )
    ]
    assert lines(f"[{WORKER}]", {ROLE: "w"}) == []


def test_bg_28_a_size_beside_the_sets_is_their_sum() -> None:
    assert lines(STORY, total="11") == []
    assert lines(STORY, total="12") == [
        (
            f'metadata.annotations[{TOTAL}]: Invalid value: "12": must be the sum 11 of the counts in {SETS}: write that, '
            "or leave it out"
        )
    ]


def test_bg_30_templates_of_more_than_a_workload_holds_are_told_what_is_enough() -> None:
    container = {"name": "c", "args": ["x" * (declaration.TEMPLATES_BYTES_MAX + 1)]}
    (line,) = lines(json.dumps([{"name": "d", "count": 1, "template": {"spec": {"containers": [container]}}}]))
    assert f"a Workload holds {declaration.TEMPLATES_BYTES_MAX} of them: leave out all but requests and ports" in line


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: &a [*a]", id="an anchor in itself"),
        pytest.param("!!python/object:os.system x", id="a tag"),
        pytest.param("!!binary aGk=", id="bytes"),
        pytest.param("a: 1\na: 2", id="a key twice"),
        pytest.param("? [a]\n: b", id="a key that is no text"),
        pytest.param("--- a\n--- b", id="two documents"),
        pytest.param("[" * 16_000, id="brackets without end"),
        pytest.param("{a: " * 4_000, id="braces without end"),
        pytest.param("\x00", id="what YAML cannot hold"),
    ],
)
def test_yaml_is_what_json_has(text: str) -> None:
    with pytest.raises(UnreadableTextError):
        read_text(text)


def test_aliases_that_stand_for_more_than_the_text_can_hold_are_refused() -> None:
    rows = ["a0: &a0 [" + "x, " * 20 + "]"]
    rows += [f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]" for n in range(1, 12)]
    with pytest.raises(UnreadableTextError, match="anchors"):
        read_text("\n".join(rows))


def test_yaml_has_one_spelling_of_numbers_and_truths() -> None:
    text = "{a: yes, b: 010, c: 2001-01-01, d: 0x1F, e: 1_000, f: 12, g: 1.5, h: true, i: ~}"
    assert read_text(text) == {
        "a": "yes",
        "b": "010",
        "c": "2001-01-01",
        "d": "0x1F",
        "e": "1_000",
        "f": 12,
        "g": 1.5,
        "h": True,
        "i": None,
    }


def test_two_declarations_that_differ_have_different_digests() -> None:
    one, other = (declared(f"[{{name: d, count: {count}}}]").declaration for count in (1, 2))
    assert one is not None
    assert other is not None
    assert one.digest != other.digest
    assert one.sets == (DeclaredSet(name="d", count=1),)


def test_of_many_mistakes_the_first_are_told() -> None:
    containers = [{"name": "c", "requests": {}}] * 5000
    text = json.dumps([{"name": "d", "count": 1, "template": {"spec": {"containers": containers}}}])
    assert len(lines(text)) == declaration.ERRORS_MAX
