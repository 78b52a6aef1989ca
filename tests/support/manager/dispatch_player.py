"""Plays the manager's machine from transcript lines (see `transcripts`): a world with scripted agents around it.

Settings: `clusters: a b` (empty: a queue for `local`), `cpu: 4`, `flavors: spot=1 on-demand=1`,
`checks: budget license=spot` (of other controllers, on one flavor or all), `ready: timeout=60 limit=1 ...`
(waitForPodsReady).
Events: `pod NAME [cpu=N] [most=SECONDS]`, `job NAME [pods=N]`, `workload NAME [cpu=N]`, `delete KIND NAME`,
`check NAME STATE [after=SECONDS] [MESSAGE]`, `set active=false`, `queue STOPPOLICY`,
`bid CLUSTER KIND [REFUSAL]` (how it answers from now on), `refuse CLUSTER REFUSAL` (commits),
`slow CLUSTER` (applies, does not lift), `mute CLUSTER`, `unmute CLUSTER`, `lift CLUSTER`, `running CLUSTER`,
`unready CLUSTER`,
`finish CLUSTER`, `cut CLUSTER`, `lose CLUSTER`, `connect CLUSTER`, `resume CLUSTER`, `fenced CLUSTER WHO`,
`dead CLUSTER` (all that runs there is over, unheard),
`restart manager`, `wait SECONDS`. After each, all that can happen at that time happens.
What comes out: writes (short), messages in both directions, Kubernetes events. Queue status is left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gatelift.core.state.readiness_values import ReadinessSettings
from gatelift_kube.deciding.writes import EmitEvent
from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef, Resource
from gatelift_kube.values.timestamps import to_text
from gatelift_wire.values.messages import Bid, BidKind, Commit, Confirm, Message, Offer, Refused, Stop
from gatelift_wire.values.refusals import Refusal
from support.manager.agents import ScriptedAgent
from support.manager.builders import NAMESPACE, Doc, a_job, a_pod, a_setting, a_workload, kueue_object
from support.manager.world import RUNNING, SUCCEEDED, World, a_world
from support.transcripts import Machine

KINDS: dict[str, Resource] = {"pod": resources.POD, "job": resources.JOB, "workload": resources.WORKLOAD}
_QUIET = frozenset({"ClusterQueue", "LocalQueue", "AdmissionCheck"})


def player(settings: dict[str, str]) -> Machine:
    """Make the world that a transcript's settings describe."""
    clusters = tuple(settings.get("clusters", "").split())
    flavors = dict(pair.split("=") for pair in settings.get("flavors", "").split())
    granted: dict[str, int | str] = dict(flavors)
    setting = a_setting(cpu=settings.get("cpu", "4"), clusters=clusters, flavors=granted or None)
    checks = settings.get("checks", "").split()
    world = a_world(
        [*_required(setting, checks), *_foreign_checks(checks)],
        clusters=clusters or ("local",),
        readiness=_readiness(settings.get("ready", "")),
    )
    return _Player(world).perform


def _readiness(text: str) -> ReadinessSettings | None:
    if not text:
        return None
    words = dict(pair.split("=") for pair in text.split())
    limit = words.get("limit")
    return ReadinessSettings(
        timeout=float(words.get("timeout", "60")),
        recovery_timeout=float(words.get("recovery", "60")),
        backoff_base=float(words.get("base", "60")),
        backoff_limit=int(limit) if limit else None,
        block_admission="block" in words,
    )


def _foreign_checks(words: list[str]) -> list[Doc]:
    """Return checks of another controller."""
    active = {"type": "Active", "status": "True", "reason": "Active", "message": "On"}
    spec = {"controllerName": "example.com/foreign"}
    checks = [kueue_object("AdmissionCheck", word.partition("=")[0], spec) for word in words]
    return [{**check, "status": {"conditions": [active]}} for check in checks]


def _required(setting: list[Doc], words: list[str]) -> list[Doc]:
    """Let the queue require these checks beside its own."""
    for document in setting:
        if document["kind"] == "ClusterQueue" and words:
            strategy = document["spec"].setdefault("admissionChecksStrategy", {"admissionChecks": []})
            for word in words:
                name, _, flavor = word.partition("=")
                strategy["admissionChecks"].append({"name": name, **({"onFlavors": [flavor]} if flavor else {})})
    return setting


class _Player:
    def __init__(self, world: World) -> None:
        self.world = world
        self.story: list[str] = []
        world.tell = self._tell

    def _tell(self, who: str, what: Any) -> None:
        if isinstance(what, EmitEvent):
            self.story.append(_event(what))
        elif who != "write":
            self.story.append(f"{who} {_message(what)}")
        else:
            verb, ref, body = what
            if ref.resource.kind not in _QUIET:
                self.story.append(f"{verb} {ref.resource.kind}{_body(ref, body)}")

    def perform(self, line: str) -> list[str]:
        verb, *words = line.split(" ")
        options = dict(word.split("=", 1) for word in words if "=" in word)
        self.story = []
        self._act(verb, [word for word in words if "=" not in word], options)
        self.world.settle()
        return self.story

    def _act(self, verb: str, words: list[str], options: dict[str, str]) -> None:
        world = self.world
        match verb:
            case "pod":
                pod = a_pod(words[0]).asking(cpu=options.get("cpu", "1"))
                most = {"kueue.x-k8s.io/max-exec-time-seconds": options["most"]} if "most" in options else {}
                world.api.apply(replace(pod, labels=most).document())
            case "job":
                world.api.apply(a_job(words[0], parallelism=int(options.get("pods", "2"))))
            case "workload":
                world.api.apply(a_workload(words[0]).asking(cpu=options.get("cpu", "1")).document())
            case "delete":
                world.api.delete(ObjectRef(KINDS[words[0]], ObjectKey(NAMESPACE, words[1])))
            case "set":
                self._set_active(options["active"] == "true")
            case "queue":
                world.api.edit(
                    ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared")),
                    lambda queue: queue["spec"].update(stopPolicy=words[0]),
                )
            case "check":
                self._check(words[0], words[1], " ".join(words[2:]), options.get("after"))
            case "wait":
                world.advance(float(words[0]))
            case "restart":
                world.restart()
            case _:
                self._at(verb, words)

    def _set_active(self, active: bool) -> None:
        meta = self.world.find("Workload")["metadata"]
        ref = ObjectRef(resources.WORKLOAD, ObjectKey(meta["namespace"], meta["name"]))
        self.world.api.edit(ref, lambda workload: workload["spec"].update(active=active))

    def _check(self, name: str, state: str, message: str, after: str | None) -> None:
        """Let another controller write the state of its check."""
        wall = to_text(1_795_000_000.0 + self.world.now)
        said: Doc = {"state": state, "message": message, "lastTransitionTime": wall}
        if after is not None:
            said["requeueAfterSeconds"] = int(after)

        def write(workload: Doc) -> None:
            next(one for one in workload["status"]["admissionChecks"] if one["name"] == name).update(said)

        for workload in self.world.all("Workload"):
            if any(one["name"] == name for one in workload.get("status", {}).get("admissionChecks", [])):
                meta = workload["metadata"]
                key = ObjectKey(meta["namespace"], meta["name"])
                self.world.api.edit(ObjectRef(resources.WORKLOAD, key), write)

    def _at(self, verb: str, words: list[str]) -> None:
        world, name = self.world, words[0]
        agent = world.agents[name]
        match verb:
            case "bid":
                agent.bid = _answer(BidKind(words[1]), Refusal(words[2]) if len(words) > 2 else None)
            case "refuse":
                agent.refuse_commit = Refusal(words[1])
            case "slow":
                agent.auto = False
            case "dead":
                agent.die()
            case "mute" | "unmute":
                agent.silent = verb == "mute"
            case "cut" | "lose":
                world.cut(name, lost=verb == "lose")
            case "connect" | "resume":
                world.connect(name, resumed=verb == "resume")
            case "fenced":
                world.fence(name, words[1])
            case _:
                _work(agent, verb)


def _work(agent: ScriptedAgent, verb: str) -> None:
    for key, held in list(agent.placements.items()):
        if held.commit is None or held.final is not None:
            continue
        pod = held.commit.kind == "Pod"
        match verb:
            case "lift":
                agent.lift(key)
            case "unready":
                agent.show(key, {**RUNNING, "conditions": [{"type": "Ready", "status": "False"}]})
            case "running":
                agent.show(key, RUNNING if pod else {"active": 2, "ready": 2})
            case "finish":
                ended = {"succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}]}
                agent.finish(key, SUCCEEDED if pod else ended)
            case _:
                raise ValueError(f"no such event: {verb}")


def _answer(kind: BidKind, refusal: Refusal | None) -> Any:
    return lambda offer: Bid(key=offer.key, kind=kind, refusal=refusal, hold_seconds=30.0)


def _message(message: Message) -> str:
    name = type(message).__name__
    match message:
        case Confirm():
            return f"{name} epochs {' '.join(str(key.epoch) for key in message.keys)}"
        case Bid():
            return f"{name} epoch {message.key.epoch} {message.kind.value}{_refusal(message.refusal)}"
        case Refused():
            return f"{name} epoch {message.key.epoch}{_refusal(message.refusal)}"
        case Stop():
            return f"{name} epoch {message.key.epoch} {message.reason}"
        case Offer() | Commit():
            flavors = " ".join(flavor for one in message.pod_sets for _, flavor in one.flavors)
            return f"{name} epoch {message.key.epoch} {message.kind} {message.name} on {flavors}"
    key = getattr(message, "key", None)
    return f"{name} epoch {key.epoch}" if key is not None else name


def _refusal(refusal: Refusal | None) -> str:
    return f" {refusal.value}" if refusal is not None else ""


def _event(event: EmitEvent) -> str:
    kind = "warning" if event.warning else "event"
    return f"{kind} on {event.ref.resource.kind}: {event.reason}: {event.message}"


def _body(ref: ObjectRef, body: Any) -> str:
    """Return what a write says, in few words."""
    if not isinstance(body, dict):
        return ": drops its finalizer" if any("finalizers" in one["path"] for one in body) else ""
    if "kind" in body:
        return f" {ref.key.name.rsplit('-', 1)[0]}"
    said = []
    status, metadata = body.get("status", {}), body.get("metadata", {})
    if "active" in body.get("spec", {}):
        said.append(f"active {body['spec']['active']}")
    if "gatelift.dev/epoch" in metadata.get("annotations", {}):
        said.append(f"epoch {metadata['annotations']['gatelift.dev/epoch']}")
    if "finalizers" in metadata:
        said.append("drops its finalizer")
    if "clusterName" in status:
        said.append(f"clusterName {status['clusterName']}")
    said += [f"check {check['state']}{_marks(check)}" for check in status.get("admissionChecks") or []]
    if status.get("requeueState"):
        at = status["requeueState"].get("requeueAt")
        said.append(f"requeue {status['requeueState']['count']} at {at[11:-1] if at else at}")
    if "phase" in status:
        said.append(f"phase {status['phase']}")
    said += [
        f"{one['type']}={one['status']} {one.get('reason', '')}".strip()
        for one in status.get("conditions") or []
        if "observedGeneration" in one
    ]
    return f": {', '.join(said)}" if said else ""


def _marks(check: dict[str, Any]) -> str:
    for update in check.get("podSetUpdates", []):
        marks = update["annotations"]
        return f" (term {marks['gatelift.dev/term']}, epoch {marks['gatelift.dev/epoch']})"
    return ""
