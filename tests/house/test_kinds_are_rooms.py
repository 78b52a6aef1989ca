"""No file outside of `kinds/` and the typed objects names a kind: held for the folders of `HELD`, whole, as they grow.

A kind is named by its literal (`"Job"`, `"pods"`), by the constant of its resource, by the class of its objects, and by
an import from its folder. `Pod` and `POD` are two things: the kind of a single pod, and what every kind's controllers
make and nodes run. Of those only what can be nothing but the kind counts: literals, and what comes from its folder.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
HELD = (
    "manager/gatelift/adapters",
    "manager/gatelift/core",
    "manager/gatelift/webhooks",
    "worker_agent/gatelift_agent",
    "protos/gatelift_wire",
    "admission/gatelift_admission/charges",
    "admission/gatelift_admission/entries",
    "admission/gatelift_admission/preemption",
    "admission/gatelift_admission/queues",
    "admission/gatelift_admission/quota",
    "admission/gatelift_admission/rounds",
    "admission/gatelift_admission/told",
    "admission/gatelift_admission/values",
    "admission/gatelift_admission/waking",
)
"""Folders, each with all that is below it."""
NO_POD = ("manager/gatelift/core", "manager/gatelift/webhooks")
"""Folders that do not even know that there are pods as objects: they reach them through a kind."""
LITERALS = frozenset({"Pod", "Job", "pods", "jobs"})
NAMES = frozenset({"JOB", "Job", "POD_KIND", "JOB_KIND", "BARE_KIND", "PodKind", "JobKind", "BareKind"})
FOLDERS = (
    "gatelift_kinds.any_pod",
    "gatelift_kinds.pod",
    "gatelift_kinds.pod_group",
    "gatelift_kinds.job",
    "gatelift_kinds.bare",
)


def named(text: str) -> Iterator[tuple[int, str]]:
    """Yield where a file names a kind, and how."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and node.value in LITERALS:
            yield node.lineno, repr(node.value)
        elif isinstance(node, ast.Name) and node.id in NAMES:
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            whole = [f"{module}.{one.name}" for one in node.names]
            for one in (module, *whole):
                if any(one == folder or one.startswith(f"{folder}.") for folder in FOLDERS):
                    yield node.lineno, one
            yield from ((node.lineno, one.name) for one in node.names if one.name in NAMES)


def pods_named(text: str) -> Iterator[tuple[int, str]]:
    """Yield where a file names the resource or the class of pods."""
    for node in ast.walk(ast.parse(text)):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in {"POD", "Pod"}:
            yield node.lineno, name  # type: ignore[attr-defined]


def files(folder: str) -> list[Path]:
    place = ROOT / folder
    return sorted(place.rglob("*.py"))


@pytest.mark.parametrize("folder", HELD)
def test_a_folder_that_is_held_names_no_kind(folder: str) -> None:
    found = files(folder)
    assert found, f"{folder} is there"
    told = [f"{path.relative_to(ROOT)}:{line}: {name}" for path in found for line, name in named(path.read_text())]
    assert told == []


@pytest.mark.parametrize(
    "probe",
    [
        'WATCHED = {"Job": 1}',
        'x = f(plural="pods")',
        "from gatelift_kube.values.resources import JOB",
        "from gatelift_kube import resources\nx = resources.JOB",
        "from gatelift_kube.objects.batch import Job",
        "from gatelift_kinds.registry import POD_KIND",
        "from gatelift_kinds.job import selector",
        "from gatelift_kinds.job.kind import LABELS_UID",
        "from gatelift_kinds import pod",
    ],
)
def test_rm_5_a_file_that_names_a_kind_is_noticed(probe: str) -> None:
    assert list(named(probe))


@pytest.mark.parametrize("folder", NO_POD)
def test_a_folder_that_reaches_pods_through_a_kind_names_none(folder: str) -> None:
    found = files(folder)
    assert found, f"{folder} is there"
    told = [f"{each.relative_to(ROOT)}:{line}: {name}" for each in found for line, name in pods_named(each.read_text())]
    assert told == []
    assert list(pods_named("x = isinstance(y, Pod)")), "a probe is noticed"


def test_a_text_that_speaks_of_pods_names_no_kind() -> None:
    assert not list(named('"""Pods of a Job."""\nTEXT = "a Job waits"\nfrom gatelift_kube.objects.core import Pod'))
