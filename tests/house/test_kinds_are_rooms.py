"""No file outside of `kinds/` and the typed objects names a kind: held for every file that is not in `ELSEWHERE`.

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
TREES = ("admission", "kube", "manager", "protos", "sandbox", "worker_agent")
"""All that runs, but `kinds/`."""
ELSEWHERE = {
    "kube/gatelift_kube/objects/": "the typed objects",
    "kube/gatelift_kube/values/resources.py": "the names of the typed objects' resources",
    "kube/gatelift_kube/decoding/decoding.py": "which typed object a document is",
    "sandbox/gatelift_sandbox/": "plays Kubernetes: the controllers, the scheduler and the store of its own kinds",
    "manager/gatelift/cli/demo.py": "writes pods and Jobs as a person does",
    "manager/gatelift/cli/demo_view.py": "shows the pods and Jobs of the demo",
}
"""Where a kind may be named, whole (decision 77): what is not here may not."""
NO_KIND = {(f"manager/gatelift/cli/{name}.py", "'pods'") for name in ("explain", "gathered", "listing")}
"""Words that name no kind: a row or a field that counts pods."""
NO_POD = ("manager/gatelift/core", "manager/gatelift/webhooks")
"""Folders that do not even know that there are pods as objects: they reach them through a kind."""
LITERALS = frozenset({"Pod", "Job", "pods", "jobs"})
NAMES = frozenset({"JOB", "Job", "POD_KIND", "JOB_KIND", "BARE_KIND", "PodKind", "JobKind", "BareKind"})
FOLDERS = tuple(
    f"gatelift_kinds.{path.parent.name}"
    for path in sorted((ROOT / "kinds/gatelift_kinds").glob("*/__init__.py"))
    if path.parent.name != "shared"
)


def _is_of_a_kind(module: str) -> bool:
    return any(module == folder or module.startswith(f"{folder}.") for folder in FOLDERS)


def named(text: str) -> Iterator[tuple[int, str]]:
    """Yield where a file names a kind, and how."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and node.value in LITERALS:
            yield node.lineno, repr(node.value)
        elif isinstance(node, ast.Name) and node.id in NAMES:
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            yield node.lineno, node.attr
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, one.name) for one in node.names if _is_of_a_kind(one.name))
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            whole = [f"{module}.{one.name}" for one in node.names]
            for one in (module, *whole):
                if _is_of_a_kind(one):
                    yield node.lineno, one
            yield from ((node.lineno, one.name) for one in node.names if one.name in NAMES)


def pods_named(text: str) -> Iterator[tuple[int, str]]:
    """Yield where a file names the resource or the class of pods."""
    for node in ast.walk(ast.parse(text)):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if name in {"POD", "Pod"}:
            yield node.lineno, name  # type: ignore[attr-defined]


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def held(tree: str) -> list[str]:
    """Return the files of a tree that may not name a kind, by their path."""
    paths = [path.relative_to(ROOT).as_posix() for path in files(tree)]
    return [path for path in paths if not path.startswith(tuple(ELSEWHERE))]


def told(path: str, text: str) -> list[str]:
    """Say where a file names a kind that may not."""
    return [f"{path}:{line}: {name}" for line, name in named(text) if (path, name) not in NO_KIND]


@pytest.mark.parametrize("tree", TREES)
def test_rm_5_a_file_that_is_not_listed_as_one_that_may_names_no_kind(tree: str) -> None:
    assert [each for path in held(tree) for each in told(path, (ROOT / path).read_text())] == []


@pytest.mark.parametrize(
    "folder",
    [
        *(f"admission/gatelift_admission/{room}" for room in ("demand", "feed", "flavors", "state")),
        *("admission/gatelift_admission", "manager/gatelift", "manager/gatelift/cli", "worker_agent/gatelift_agent"),
        *("kube/gatelift_kube/deciding", "protos/gatelift_wire/values", "manager/gatelift/core/works"),
    ],
)
def test_rm_5_a_probe_in_any_folder_is_held(folder: str) -> None:
    probe = f"{folder}/probe.py"
    assert not probe.startswith(tuple(ELSEWHERE))
    assert any(Path(path).parent.as_posix() == folder for path in held(folder)), "its neighbours are held"
    assert told(probe, 'def is_job(kind: str) -> bool:\n    return kind == "Job"\n') == [f"{probe}:2: 'Job'"]


def test_rm_5_each_place_that_may_name_a_kind_is_there_names_one_and_stands_in_the_decision() -> None:
    decision = (ROOT / "docs/decisions/0077-a-kind-is-a-folder.md").read_text()
    for place in [*ELSEWHERE, *(path for path, _ in NO_KIND)]:
        found = [ROOT / place] if (ROOT / place).is_file() else files(place)
        assert any(list(named(each.read_text())) for each in found), place
        assert f"`{place}`" in decision, place


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
        "import gatelift_kinds.pod_group.kind",
        'match kind:\n    case "Job":\n        pass',
    ],
)
def test_rm_5_a_file_that_names_a_kind_is_noticed(probe: str) -> None:
    assert list(named(probe))


@pytest.mark.parametrize("folder", NO_POD)
def test_a_folder_that_reaches_pods_through_a_kind_names_none(folder: str) -> None:
    found = files(folder)
    assert found, f"{folder} is there"
    said = [f"{each.relative_to(ROOT)}:{line}: {name}" for each in found for line, name in pods_named(each.read_text())]
    assert said == []
    assert list(pods_named("x = isinstance(y, Pod)")), "a probe is noticed"


def test_a_text_that_speaks_of_pods_names_no_kind() -> None:
    assert not list(named('"""Pods of a Job."""\nTEXT = "a Job waits"\nfrom gatelift_kube.objects.core import Pod'))
