"""Random instances for the twin, from a seed alone, in the form of `admission_cases`; and their shrinking."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from support.twin.admission_cases import STRATEGIES, Case

FLAVORS = ("red", "green", "blue")
COHORTS = {"top": "", "mid": "top", "low": "mid", "side": "top"}
"""Cohort -> parent: three levels."""
WORKLOADS_MAX = 14
QUEUES_MAX = 4
STEPS_MAX = 18
EVENTS = ("submit",) * 5 + ("finish", "finish", "confirm", "stopped", "stop", "change")
FAIR_SHARE = 0.4
"""Part of the instances that are under fair sharing."""
CHANGES_SHARE = 0.35
"""Part of the instances with checks, reclaimable pods, changed priorities and stopped LocalQueues."""
LOST_SHARE = 0.3
"""Part of the instances with workloads on clusters that are lost, and perhaps come back."""
SHRINKS_MAX = 1500
"""Smaller cases tried: half a minute."""


def _maybe(rng: Random, chance: float) -> bool:
    return rng.random() < chance


def _table(rng: Random, groups: list[dict[str, Any]], low: int, high: int, chance: float) -> dict[str, Any]:
    """Return limits for some of the cells of `groups`."""
    found: dict[str, Any] = {}
    for group in groups:
        for flavor, quotas in group.items():
            for resource in quotas:
                if _maybe(rng, chance):
                    found.setdefault(flavor, {})[resource] = rng.randint(low, high)
    return found


def _resource_groups(rng: Random) -> list[dict[str, Any]]:
    """Return mostly one group of few flavors with cpu alone, so that workloads meet each other."""
    # Mostly the first flavors, so that the members of a cohort share some.
    names = (
        list(FLAVORS[: rng.choice([1, 2, 2])])
        if _maybe(rng, 0.6)
        else rng.sample(FLAVORS, rng.choice([1, 1, 1, 2, 2, 3]))
    )
    first = ["cpu"] + ["memory"] * _maybe(rng, 0.2)
    split = len(names) > 1 and _maybe(rng, 0.2)
    parts = [(names[:1], ["gpu"]), (names[1:], first)] if split else [(names, first)]
    return [
        {flavor: {one: rng.randint(0, 9) for one in resources} for flavor in flavors} for flavors, resources in parts
    ]


def quotas(rng: Random, *, limits: bool) -> Case:
    """Return the quota of a queue or cohort; lending limits stay within nominal."""
    groups = _resource_groups(rng)
    found: Case = {"groups": groups}
    if limits:
        found["borrow"] = _table(rng, groups, 0, 6, 0.3)
        lend = _table(rng, groups, 0, 8, 0.3)
        nominal = {flavor: cells for group in groups for flavor, cells in group.items()}
        found["lend"] = {f: {r: min(v, nominal[f][r]) for r, v in cells.items()} for f, cells in lend.items()}
    return found


def queue(rng: Random, policies: Callable[[Random], Case]) -> Case:
    """Return a ClusterQueue."""
    cohort = rng.choice(["", *COHORTS, "top", "mid"])
    found: Case = {**quotas(rng, limits=bool(cohort)), **policies(rng)}
    if cohort:
        found["cohort"] = cohort
    found["strategy"] = rng.choice(["StrictFIFO", "BestEffortFIFO"])
    if _maybe(rng, 0.5):
        can = ["MayStopSearch", "TryNextFlavor"]
        both = [rng.choice(can), rng.choice(can)]
        found["fungibility"] = both
        if both == ["TryNextFlavor", "TryNextFlavor"] and _maybe(rng, 0.6):
            found["fungibility"] = [*both, rng.choice(["BorrowingOverPreemption", "PreemptionOverBorrowing"])]
    if _maybe(rng, 0.03):
        found["selector"] = {"team": "red"}
    return found


def pod_set(rng: Random) -> Case:
    """Return a pod set."""
    resources = ["cpu"] + ["memory"] * _maybe(rng, 0.04) + ["gpu"] * _maybe(rng, 0.04)
    found: Case = {
        "count": rng.choice([1, 1, 1, 2, 3]),
        "requests": {one: rng.randint(0 if _maybe(rng, 0.1) else 1, 4) for one in resources},
    }
    if found["count"] > 1 and _maybe(rng, 0.25):
        found["min_count"] = rng.randint(1, found["count"])
    if _maybe(rng, 0.15):
        found["selector"] = {"zone": rng.choice(["a", "b"])}
    if _maybe(rng, 0.3):
        found["tolerations"] = [["spot", "Exists", "", ""]]
    if _maybe(rng, 0.1):
        term = {"matchExpressions": [{"key": "zone", "operator": rng.choice(["In", "NotIn"]), "values": ["a"]}]}
        required = {"nodeSelectorTerms": [term]}
        found["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return found


def job(rng: Random, queues: list[str], base: int) -> Case:
    """Return a workload; later ones have a higher `base` of priorities, so that there is something to preempt."""
    sets = {f"s{index}": pod_set(rng) for index in range(rng.choice([1, 1, 1, 2]))}
    for one in list(sets.values())[1:]:
        one.pop("min_count", None)  # validation allows it for one pod set
    return {
        "queue": rng.choice(queues),
        "priority": base + rng.randint(0, 2),
        "created": rng.randint(0, 5),
        "sets": sets,
    }


def steps(rng: Random, workloads: list[str], queues: Case) -> list[Any]:
    """Return events and cycles; every workload is submitted at some time."""
    waiting = workloads[rng.randint(1, len(workloads)) :]
    rng.shuffle(waiting)
    found: list[Any] = ["cycle"]
    for _ in range(rng.randint(2, STEPS_MAX)):
        what = rng.choice(EVENTS)
        if what == "submit" and waiting:
            found.append({"submit": waiting.pop()})
        elif what in ("finish", "confirm", "stopped"):
            found.append({what: rng.choice(workloads)})
        elif what == "stop" and _maybe(rng, 0.3):
            found.append({"stop": [rng.choice(list(queues)), rng.choice(["Hold", "None"])]})
        elif what == "change" and _maybe(rng, 0.3):
            name = rng.choice(list(queues))
            found.append({"change": [name, quotas(rng, limits="cohort" in queues[name])]})
        if _maybe(rng, 0.5):
            found.append("cycle")
        if _maybe(rng, 0.3):
            found.append("drain")
    return [*found, *({"submit": one} for one in waiting), "cycle"]


def no_policies(rng: Random) -> Case:
    """Return no preemption policy but the one that the reserve rule looks at."""
    return {"reclaim": "Any"} if _maybe(rng, 0.2) else {}


def classical_policies(rng: Random) -> Case:
    """Return any combination of the policies of classical preemption that is valid."""
    found: Case = {}
    if _maybe(rng, 0.7):
        found["within"] = rng.choice(["LowerPriority", "LowerOrNewerEqualPriority"])
    if _maybe(rng, 0.8):
        found["reclaim"] = rng.choice(["LowerPriority", "Any"])
        if _maybe(rng, 0.4):
            found["borrow"] = "LowerPriority"
            if _maybe(rng, 0.5):
                found["borrow"] = ["LowerPriority", rng.randint(0, 3)]
    return {"preempt": found} if found else {}


def instance(seed: int, policies: Callable[[Random], Case] = classical_policies) -> Case:
    """Return the instance of a seed."""
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    names = [f"q{index}" for index in range(rng.randint(1, QUEUES_MAX))]
    queues = {name: queue(rng, policies) for name in names}
    cohorts = {}
    for name, parent in COHORTS.items():
        if parent or _maybe(rng, 0.3):
            cohorts[name] = {"parent": parent, **(quotas(rng, limits=bool(parent)) if _maybe(rng, 0.4) else {})}
    flavors: Case = {}
    for name in FLAVORS:
        flavors[name] = {}
        if _maybe(rng, 0.3):
            flavors[name]["labels"] = {"zone": rng.choice(["a", "b"])}
        if _maybe(rng, 0.1):
            flavors[name]["taints"] = [["spot", "true", "NoSchedule"]]
    workloads = {f"w{index:02}": job(rng, names, index // 5) for index in range(rng.randint(3, WORKLOADS_MAX))}
    shared: Case = {}
    if _maybe(rng, FAIR_SHARE):
        shared["fair"] = rng.choice(list(STRATEGIES))
        for one in [*queues.values(), *cohorts.values()]:
            if _maybe(rng, 0.4):
                one["weight"] = rng.choice([0, 1, 2, "500m"])
    case = {
        "sentence": f"seed {seed}",
        **shared,
        "queues": queues,
        "cohorts": cohorts,
        "flavors": flavors,
        "workloads": workloads,
        "steps": steps(rng, list(workloads), queues),
    }
    case = with_changes(rng, case) if _maybe(rng, CHANGES_SHARE) else case
    return with_lost_clusters(seed, case)


def with_lost_clusters(seed: int, case: Case) -> Case:
    """Let workloads be out of reach for a while in some of the instances; the others are what they were without."""
    rng = Random(f"clusters of {seed}")  # noqa: S311 - reproducible, not secret
    if not _maybe(rng, LOST_SHARE):
        return case
    found: list[Any] = []
    for step in case["steps"]:
        found.append(step)
        if _maybe(rng, 0.4):
            found.append({"reach": [rng.choice(list(case["workloads"])), _maybe(rng, 0.7)]})
        if _maybe(rng, 0.2):
            found.append("cycle")
    return {**case, "steps": [*found, "cycle"]}


def with_groups(seed: int, case: Case) -> Case:
    """Let pod sets of workloads that have several be in one group, mostly with others beside it."""
    rng = Random(f"groups of {seed}")  # noqa: S311 - reproducible, not secret
    found = copy.deepcopy(case)
    for one in found["workloads"].values():
        for name in ("more", "last"):
            if _maybe(rng, 0.4):
                one["sets"][name] = pod_set(rng)
                one["sets"][name].pop("min_count", None)
        for fields in one["sets"].values():
            if _maybe(rng, 0.7):
                fields["group"] = rng.choice(["g", "g", "h"])
    return found


def with_slices(seed: int, case: Case) -> Case:
    """Let some workloads be elastic: later slices of other sizes come, once or twice, and are written or not."""
    rng = Random(f"slices of {seed}")  # noqa: S311 - reproducible, not secret
    found = copy.deepcopy(case)
    after: list[Any] = []
    for uid in rng.sample(list(case["workloads"]), min(len(case["workloads"]), rng.randint(1, 4))):
        first = found["workloads"][uid]
        first["slice"] = {"chain": uid, "number": 1}
        known = [uid]
        for number in range(2, rng.randint(3, 4)):
            later = copy.deepcopy(first)
            later["created"] = first["created"] + number
            later["slice"] = {"chain": uid, "number": number, "by_parts": _maybe(rng, 0.4)}
            for one in later["sets"].values():
                one["count"] = max(1, one["count"] + rng.choice([-1, 0, 1, 1, 2, 4]))
                one["min_count"] = min(one.get("min_count", 1), one["count"])
                if "min_count" not in next(iter(first["sets"].values())):
                    del one["min_count"]
            known.append(f"{uid}-{number}")
            found["workloads"][known[-1]] = later
            after += [known[-2], known[-1], "cycle", known[-1]]
            if _maybe(rng, 0.5):
                after += [known[-1], known[-2]]
    steps: list[Any] = []
    for one in after:
        if one == "cycle":
            steps += ["cycle", "drain", "cycle"]
        elif {"submit": one} not in steps and one not in case["workloads"]:
            steps.append({"submit": one})
        else:
            steps.append({rng.choice(["confirm", "confirm", "confirm", "finish", "stopped"]): one})
    mixed: list[Any] = []
    rest = list(case["steps"])
    while steps or rest:
        take = steps if steps and (not rest or _maybe(rng, 0.5)) else rest
        mixed.append(take.pop(0))
    return {**found, "steps": [*mixed, "cycle", "drain", "cycle"]}


def with_changes(rng: Random, case: Case) -> Case:
    """Add checks, and changes of workloads and LocalQueues between the steps."""
    for one in case["queues"].values():
        if _maybe(rng, 0.3):
            one["checks"] = {name: rng.sample(FLAVORS, rng.randint(0, 2)) for name in rng.sample(["x", "y"], 1)}
    found: list[Any] = []
    for step in case["steps"]:
        found.append(step)
        uid, name = rng.choice(list(case["workloads"])), rng.choice(list(case["queues"]))
        what = rng.choice(["priority", "priority", "reclaim", "reclaim", "check", "stop_local", "stop", "", "", "", ""])
        if what == "priority":
            found.append({"priority": [uid, rng.randint(0, 4)]})
        elif what == "reclaim" and all("min_count" not in one for one in case["workloads"][uid]["sets"].values()):
            found.append({"reclaim": [uid, rng.randint(1, 2)]})
        elif what == "check":
            found.append({"check": [uid, rng.choice(["Retry", "Rejected", "Ready", "Pending"])]})
        elif what in ("stop", "stop_local") and _maybe(rng, 0.3):
            found.append({what: [name, rng.choice(["Hold", "HoldAndDrain", "None", "None"])]})
        if _maybe(rng, 0.2):
            found.append("cycle")
    return {**case, "steps": [*found, "cycle"]}


# -- shrinking --------------------------------------------------------------------------------------------------------


def _smaller(case: Case) -> Iterator[Case]:
    """Yield cases with one thing less."""
    for index in range(len(case["steps"])):
        yield {**case, "steps": case["steps"][:index] + case["steps"][index + 1 :]}
    for name in case["workloads"]:
        other = copy.deepcopy(case)
        del other["workloads"][name]
        other["steps"] = [s for s in other["steps"] if isinstance(s, str) or name not in _named(s)]
        yield other
    for name in case["queues"]:
        if all(one["queue"] != name for one in case["workloads"].values()):
            other = copy.deepcopy(case)
            del other["queues"][name]
            other["steps"] = [s for s in other["steps"] if isinstance(s, str) or name not in _named(s)]
            if other["queues"]:
                yield other
    for path in _paths(case, ()):
        other = copy.deepcopy(case)
        place: Any = other
        for key in path[:-1]:
            place = place[key]
        if isinstance(place[path[-1]], int):
            place[path[-1]] //= 2
        else:
            del place[path[-1]]
        yield other


def _named(step: dict[str, Any]) -> list[Any]:
    (value,) = step.values()
    return value if isinstance(value, list) else [value]


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the places of optional fields and of numbers above zero."""
    optional = {
        "checks",
        "cohort",
        "borrow",
        "lend",
        "fungibility",
        "selector",
        "priority",
        "created",
        "labels",
        "taints",
    }
    optional |= {
        "checks",
        "tolerations",
        "affinity",
        "reclaim",
        "preempt",
        "within",
        "borrow",
        "groups",
        "strategy",
        "memory",
        "gpu",
    }
    if isinstance(value, dict):
        for key, inner in value.items():
            here = (*path, key)
            if (
                (key in optional and len(path) > 1 and not isinstance(inner, int))
                or path == ("cohorts",)
                or (len(path) > 2 and path[-1] in ("borrow", "lend", "sets"))
            ):
                yield here
            if len(path) > 3 and path[-2] == "groups" and len(value) > 1:
                yield here
            if isinstance(inner, int) and not isinstance(inner, bool) and inner > 0:
                yield here
            elif path != () or key != "steps":
                yield from _paths(inner, here)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _paths(inner, (*path, index))


def shrink(case: Case, fails: Callable[[Case], bool], attempts: int = SHRINKS_MAX) -> Case:
    """Return a smaller case that still fails, after at most `attempts` trials."""
    left = attempts
    progress = True
    while progress and left > 0:
        progress = False
        for other in _smaller(case):
            left -= 1
            if left <= 0:
                break
            if _fails(other, fails):
                case, progress = other, True
                break
    return case


def _fails(case: Case, fails: Callable[[Case], bool]) -> bool:
    try:
        return fails(case)
    except (KeyError, IndexError, StopIteration, ValueError):
        return False  # cut too much: no case any more
