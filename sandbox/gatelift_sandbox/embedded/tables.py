"""Tables for `kubectl get`: columns and cells of each kind, ages counted to `now`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gatelift_kube.values import timestamps
from gatelift_sandbox.embedded import json_path
from gatelift_sandbox.embedded.documents import Document, at, items, meta
from gatelift_sandbox.embedded.kinds import Column, ServedKind, StorageKey
from gatelift_sandbox.embedded.rules.cluster import node_is_ready

Cells = Callable[[Document, float], list[Any]]
NAME = Column(name="Name", json_path=".metadata.name", type="string", description="Name must be unique.")
UNKNOWN, NONE = "<unknown>", "<none>"


def columns_of(kind: ServedKind) -> list[Column]:
    """Return all columns of a kind, the name first."""
    builtin = _BUILTIN.get(kind.storage)
    if builtin is not None:
        return [NAME, *builtin[0]]
    return [NAME, *(kind.columns or (Column(name="Age", json_path=".metadata.creationTimestamp", type="date"),))]


def definitions(columns: Sequence[Column]) -> list[Document]:
    """Return the columns as a Table says them."""
    return [
        {
            "name": column.name,
            "type": column.type,
            "format": "name" if column is NAME else "",
            "description": column.description or column.json_path,
            "priority": column.priority,
        }
        for column in columns
    ]


def row(kind: ServedKind, document: Document, now: float, include: str) -> Document:
    """Return one row. `include` is None, Metadata or Object (of the document)."""
    builtin = _BUILTIN.get(kind.storage)
    name = meta(document).get("name", "")
    if builtin is not None:
        cells = [name, *builtin[1](document, now)]
    else:
        cells = [name, *(_cell(document, column, now) for column in columns_of(kind)[1:])]
    shown: Document = {"cells": cells}
    if include == "Object":
        shown["object"] = document
    elif include != "None":
        shown["object"] = partial(document)
    return shown


def partial(document: Document) -> Document:
    """Return a document's PartialObjectMetadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta(document)}


def table(kind: ServedKind, rows: list[Document], about: Document, *, headers: bool = True) -> Document:
    """Return a Table of rows."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": about,
        "columnDefinitions": definitions(columns_of(kind)) if headers else [],
        "rows": rows,
    }


def age(text: str | None, now: float) -> str:
    """Return the time since a timestamp as kubectl shows ages."""
    if not text:
        return UNKNOWN
    try:
        return duration(now - timestamps.to_seconds(text))
    except ValueError:
        return "<invalid>"


_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60


def duration(seconds: float) -> str:
    """Return a duration as kubectl shows it: 1s, 119s, 2m, 10m, 5h30m, 3d, ..."""
    whole = int(seconds)
    if whole < 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    minutes, hours, days = whole // _MINUTE, whole // _HOUR, whole // _DAY
    if minutes < 10:
        return _pair(minutes, "m", whole % _MINUTE, "s")
    if minutes < 3 * 60:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    return _pair(days // 365, "y", days % 365, "d") if days < 365 * 8 else f"{days // 365}y"


def _pair(large: int, unit: str, small: int, sub: str) -> str:
    return f"{large}{unit}{small}{sub}" if small else f"{large}{unit}"


def _cell(document: Document, column: Column, now: float) -> Any:
    found = json_path.find(document, column.json_path)
    if not found or found[0] is None:
        return UNKNOWN if column.type == "date" else None
    if column.type == "date":
        return age(str(found[0]), now)
    if len(found) > 1 or isinstance(found[0], list | dict):
        return str(found[0]) if len(found) == 1 else ",".join(map(str, found))
    if column.type == "string":
        return str(found[0]).lower() if isinstance(found[0], bool) else str(found[0])
    return found[0]


def _created(document: Document, now: float) -> str:
    return age(meta(document).get("creationTimestamp"), now)


def _pod(document: Document, now: float) -> list[Any]:
    statuses = items(document, "status", "containerStatuses")
    ready = sum(bool(status.get("ready")) for status in statuses)
    total = len(items(document, "spec", "containers"))
    restarts = sum(int(status.get("restartCount", 0)) for status in statuses)
    gates = ",".join(str(g.get("name")) for g in items(document, "spec", "schedulingGates"))
    return [
        f"{ready}/{total}",
        _pod_state(document, statuses),
        str(restarts),
        _created(document, now),
        at(document, "status", "podIP") or NONE,
        at(document, "spec", "nodeName") or NONE,
        at(document, "status", "nominatedNodeName") or NONE,
        gates or NONE,
    ]


def _pod_state(document: Document, statuses: list[Document]) -> str:
    status = document.get("status") or {}
    if meta(document).get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    state = status.get("reason") or status.get("phase") or ""
    if any(c.get("reason") == "SchedulingGated" for c in items(status, "conditions")):
        state = "SchedulingGated"
    for container in statuses:
        waiting = at(container, "state", "waiting", "reason")
        ended = at(container, "state", "terminated")
        if waiting:
            state = waiting
        elif isinstance(ended, dict):
            state = ended.get("reason") or f"ExitCode:{ended.get('exitCode')}"
    return str(state)


def _job(document: Document, now: float) -> list[Any]:
    spec, status = document.get("spec") or {}, document.get("status") or {}
    done, wanted = status.get("succeeded", 0), spec.get("completions")
    many = spec.get("parallelism") or 0
    goal = str(wanted) if wanted is not None else f"1 of {many}" if many > 1 else "1"
    start, end = status.get("startTime"), status.get("completionTime")
    took = age(start, timestamps.to_seconds(end) if end else now) if start else ""
    containers = items(document, "spec", "template", "spec", "containers")
    selector = at(document, "spec", "selector", "matchLabels") or {}
    return [
        _job_state(document),
        f"{done}/{goal}",
        took,
        _created(document, now),
        ",".join(str(c.get("name")) for c in containers),
        ",".join(str(c.get("image")) for c in containers),
        ",".join(f"{key}={value}" for key, value in selector.items()) or NONE,
    ]


def _job_state(document: Document) -> str:
    true = {c.get("type") for c in items(document, "status", "conditions") if c.get("status") == "True"}
    for condition, shown in (("Complete", "Complete"), ("Failed", "Failed")):
        if condition in true:
            return shown
    if meta(document).get("deletionTimestamp"):
        return "Terminating"
    for condition in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if condition in true:
            return condition
    return "Running"


def _node(document: Document, now: float) -> list[Any]:
    state = "Ready" if node_is_ready(document) else "NotReady"
    if at(document, "spec", "unschedulable"):
        state += ",SchedulingDisabled"
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key.removeprefix(prefix) for key in meta(document).get("labels") or {} if key.startswith(prefix))
    version = at(document, "status", "nodeInfo", "kubeletVersion") or ""
    return [state, ",".join(roles) or NONE, _created(document, now), version]


def _event(document: Document, now: float) -> list[Any]:
    about = document.get("involvedObject") or {}
    seen = document.get("lastTimestamp") or document.get("eventTime") or meta(document).get("creationTimestamp")
    series = at(document, "series", "lastObservedTime")
    target = f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"
    return [age(series or seen, now), document.get("type"), document.get("reason"), target, document.get("message")]


def _columns(text: str) -> tuple[Column, ...]:
    """Read `Name:type`, a `*` for those that are shown with `-o wide` only."""
    found = []
    for part in text.split(","):
        name, _, kind = part.strip().rstrip("*").partition(":")
        found.append(Column(name=name, json_path=name, type=kind or "string", priority=int(part.endswith("*"))))
    return tuple(found)


_BUILTIN: dict[StorageKey, tuple[tuple[Column, ...], Cells]] = {
    ("", "pods"): (
        _columns("Ready,Status,Restarts,Age,IP*,Node*,Nominated Node*,Scheduling Gates*"),
        _pod,
    ),
    ("batch", "jobs"): (_columns("Status,Completions,Duration,Age,Containers*,Images*,Selector*"), _job),
    ("", "nodes"): (_columns("Status,Roles,Age,Version"), _node),
    ("", "namespaces"): (
        _columns("Status,Age"),
        lambda document, now: [at(document, "status", "phase"), _created(document, now)],
    ),
    ("", "configmaps"): (
        _columns("Data:integer,Age"),
        lambda document, now: [len(document.get("data") or {}), _created(document, now)],
    ),
    ("", "secrets"): (
        _columns("Type,Data:integer,Age"),
        lambda document, now: [document.get("type"), len(document.get("data") or {}), _created(document, now)],
    ),
    ("", "events"): (_columns("Last Seen,Type,Reason,Object,Message"), _event),
    ("coordination.k8s.io", "leases"): (
        _columns("Holder,Age"),
        lambda document, now: [at(document, "spec", "holderIdentity") or "", _created(document, now)],
    ),
    ("scheduling.k8s.io", "priorityclasses"): (
        _columns("Value:integer,Global-Default:boolean,Age,PreemptionPolicy"),
        lambda document, now: [
            document.get("value", 0),
            bool(document.get("globalDefault")),
            _created(document, now),
            document.get("preemptionPolicy"),
        ],
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): (
        _columns("Created At"),
        lambda document, _now: [meta(document).get("creationTimestamp")],
    ),
}
