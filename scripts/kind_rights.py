"""Writes the rights to kinds into the manifests, from `gatelift_kinds.registry`. `--check` writes nothing.

    python -m scripts.kind_rights [--check]

A part of a manifest begins behind one line and ends before another; all else in the file is written by hand. Besides,
each resource that travels has the policies that keep it: without them nobody holds the manager, or whoever edits what
was placed, to what is promised.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gatelift_kinds.registry import SERVED, Registry
from gatelift_kube.values.resources import Resource

DEPLOY = Path(__file__).parent.parent / "deploy"
POLICIES = {
    "management/policies.yaml": "gatelift-manager-{plural}",
    "worker/policies.yaml": "gatelift-placed-{plural}",
}
"""Files below `policies/`, and the name of the policy that each resource has there."""


@dataclass(frozen=True)
class Part:
    """A part of a manifest: the lines between `behind` and `before`."""

    file: str
    behind: str
    before: str
    rules: Callable[[Registry], Iterator[str]]


def rule(resource: Resource, verbs: Sequence[str], subresource: str = "", why: str = "") -> Iterator[str]:
    """Yield the lines of one rule, none where nothing is asked."""
    if not verbs:
        return
    if why:
        yield f"  # {why}"
    group = resource.group or '""'
    yield f"  - apiGroups: [{group}]"
    yield f"    resources: [{resource.plural}{f'/{subresource}' if subresource else ''}]"
    yield f"    verbs: [{', '.join(verbs)}]"


def at_home(kinds: Registry) -> Iterator[str]:
    """Yield what the manager may do with users' objects."""
    for each in kinds.travelling:
        yield from rule(each, kinds.rights(each).at_home)
        yield from rule(each, kinds.rights(each).at_home_status, "status")


def finalizers(kinds: Registry) -> Iterator[str]:
    """Yield the right to let a Workload block the deletion of its owner."""
    for each in kinds.travelling:
        yield from rule(each, ("update",), "finalizers")


def at_worker(kinds: Registry) -> Iterator[str]:
    """Yield what an agent may do in an accepted namespace."""
    for each in kinds.travelling:
        rights = kinds.rights(each)
        yield from rule(each, rights.at_worker)
        yield from rule(each, rights.at_worker_status, "status", rights.at_worker_status_why)


def asked(kinds: Registry) -> Iterator[str]:
    """Yield what the webhook looks up."""
    for each in kinds.travelling:
        yield from rule(each, kinds.rights(each).asked)


PARTS = (
    Part("manager/access.yaml", "  # The users' own objects:", "  # A Workload blocks", at_home),
    Part("manager/access.yaml", "  # A Workload blocks", "  # Worker clusters:", finalizers),
    Part("agent/access.yaml", "  name: gatelift-agent-namespace\nrules:", "  - apiGroups: [events.k8s.io]", at_worker),
    Part("webhooks/access.yaml", "  # A pod whose Job is queued", "  # The queue's name of", asked),
)


def written(part: Part, text: str, kinds: Registry) -> str:
    """Return a manifest with this part as the registry says. ValueError: the part is not there."""
    begin = text.index("\n", text.index(part.behind) + len(part.behind)) + 1
    end = text.index(part.before, begin)
    return text[:begin] + "".join(f"{line}\n" for line in part.rules(kinds)) + text[end:]


def unkept(kinds: Registry, read: Callable[[str], str]) -> list[str]:
    """Name each resource that travels and lacks a policy of its own in a file; `read` returns a file's text."""
    missing = []
    for file, name in POLICIES.items():
        documents: list[dict[str, Any]] = list(yaml.safe_load_all(read(f"policies/{file}")))
        held = {
            (each["metadata"]["name"], group, resource.partition("/")[0])
            for each in documents
            if each and each["kind"] == "ValidatingAdmissionPolicy"
            for found in each["spec"]["matchConstraints"]["resourceRules"]
            for group in found["apiGroups"]
            for resource in found["resources"]
        }
        missing += [
            f"policies/{file}: no policy {name.format(plural=each.plural)} of {each.plural}"
            for each in kinds.travelling
            if (name.format(plural=each.plural), each.group, each.plural) not in held
        ]
    return missing


def main() -> int:
    """Write the manifests, or compare them; return 1 where something is missing or out of date."""
    problems = unkept(SERVED, lambda file: (DEPLOY / file).read_text())
    for part in PARTS:
        path = DEPLOY / part.file
        text = path.read_text()
        wanted = written(part, text, SERVED)
        if wanted == text:
            continue
        if "--check" in sys.argv:
            problems.append(f"{part.file} is out of date: run `python -m scripts.kind_rights`")
        else:
            path.write_text(wanted)
    print("\n".join(problems) or f"{len(PARTS)} parts of manifests, and policies, as the kinds say")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
