"""Which clusters a queue's work may run on: by its admission checks, their MultiKueueConfig, and that one's selector.

Neighbours: `fit` looks at those clusters, `checks` shows how they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gatelift.core.state.core import Core
from gatelift_kinds.shared.cluster_selector import ANNOTATION_CLUSTER_SELECTOR, parse_selector
from gatelift_kinds.shared.markers import MULTIKUEUE_MANAGER
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import MultiKueueConfig
from gatelift_kube.objects.selectors import matches

SELECTOR_PROBLEM_CHARS_MAX = 300
"""A selector may be long; of what is wrong with it the beginning says which part it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Clusters that the queue names, and the check that names them ("" for `local`)."""

    clusters: tuple[str, ...]
    check: str = ""
    problem: str = ""


def multikueue_check(core: Core, names: Iterable[str]) -> str:
    """Return the one of these admission checks that dispatches, "" if none."""
    for name in names:
        check = core.knowledge.checks.get(name)
        if check is not None and check.spec.controller_name == MULTIKUEUE_MANAGER:
            return name
    return ""


def others(core: Core, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of these admission checks that other controllers answer."""
    dispatching = multikueue_check(core, names)
    return tuple(name for name in names if name != dispatching)


def targets(core: Core, checks: tuple[str, ...]) -> Targets:
    """Return which clusters may run a workload that needs these checks; no dispatching check means `local`.

    A check that dispatches never means `local`: what it dispatches has MultiKueue's name in `spec.managedBy`, and the
    management cluster's own controllers keep away from that for good (HD-258).
    """
    name = multikueue_check(core, checks)
    if not name:
        return Targets(clusters=(LOCAL_CLUSTER,))
    config = core.knowledge.config_of(core.knowledge.checks[name])
    if config is None:
        return Targets(clusters=(), check=name, problem=f"admission check {name} names no existing MultiKueueConfig")
    return Targets(clusters=named(core, config), check=name)


def named(core: Core, config: MultiKueueConfig) -> tuple[str, ...]:
    """Return the clusters that a MultiKueueConfig names, and those that its selector selects."""
    chosen = dict.fromkeys(each for each in config.spec.clusters if each != LOCAL_CLUSTER)
    selector = config.metadata.annotations.get(ANNOTATION_CLUSTER_SELECTOR, "")
    if selector:
        chosen.update(dict.fromkeys(_selected(core, selector)))
    return tuple(chosen)


def selector_problem(config: MultiKueueConfig) -> str:
    """Return why the selector of a MultiKueueConfig selects nothing, "" where it can be read or is not there."""
    try:
        parse_selector(config.metadata.annotations.get(ANNOTATION_CLUSTER_SELECTOR, ""))
    except ValueError as error:
        return f"annotation {ANNOTATION_CLUSTER_SELECTOR} selects nothing: {str(error)[:SELECTOR_PROBLEM_CHARS_MAX]}"
    return ""


def _selected(core: Core, selector: str) -> tuple[str, ...]:
    try:
        parsed = parse_selector(selector)
    except ValueError:
        return ()
    found = []
    for name in core.links.clusters():
        view = core.view(name)
        if view is not None and name != LOCAL_CLUSTER and matches(parsed, dict(view.labels)):
            found.append(name)
    return tuple(found)
