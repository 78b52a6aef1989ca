"""What a person sees of a mistake: one function a door, each drives the real code and returns the text shown.

Neighbour: the table `tests/bad_input.yaml`.
"""

from __future__ import annotations

import asyncio
import json
import os
import textwrap
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import yaml
from typer.testing import CliRunner

from gatelift import config as manager_config
from gatelift.cli.main import app
from gatelift.core.api.commands import AnswerEnrolment
from gatelift.core.api.events import EnrolmentAsked
from gatelift.core.clusters.enrolment import Enrolments, EnrolmentSettings
from gatelift.core.clusters.link_values import WriteIds
from gatelift.webhooks import review
from gatelift_admission.feed import validation, validation_workload
from gatelift_agent import config as agent_config
from gatelift_kinds.pod_group.reviewed import ReviewedMember
from gatelift_kinds.registry import ELASTIC_JOB_KIND, JOB_KIND, POD_KIND
from gatelift_kinds.shared.review import WebhookFacts
from gatelift_kinds.shared.reviewed import Reviewed
from gatelift_kube.api.config import auto
from gatelift_kube.deciding.errors import ConfigError
from gatelift_kube.objects import kueue
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import CONFIG_MAP, SECRET, WORKER_CLUSTER
from gatelift_wire.encoding import codec
from gatelift_wire.values import limits, tokens
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    CountsReport,
    CreditGrant,
    Frame,
    GatesLifted,
    LeaseRenew,
    ObjectReport,
    PodSetCounts,
)
from gatelift_wire.values.violations import WireViolation
from support.servers.fake_apiserver import FakeApiServer, status_of

MANAGER, AGENT = manager_config.load, agent_config.load
CA = b"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n"
TOKEN = tokens.compose("w1", bytes(24), CA)
AT = 1_800_000_000.0


@contextmanager
def written(text: str) -> Iterator[Path]:
    """Have the text in a file of its own, for as long as it is needed."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file.yaml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        yield path


# --- configuration -------------------------------------------------------------------------------------------------


def configuration(load: Callable[[Path], object], text: str) -> str:
    """Load a configuration file; return what is said of it, without its path."""
    with written(text) as path:
        try:
            load(path)
        except manager_config.ConfigError as error:
            return str(error).replace(str(path), "FILE")
    return "(accepted)"


def manager_file(text: str) -> str:
    """Return what is said of a manager's configuration."""
    return configuration(MANAGER, text)


def nested_file(depth: str) -> str:
    """Return what is said of a manager's configuration with a list so deep."""
    return manager_file("a: " + "[" * int(depth))


def agent_file(text: str) -> str:
    """Return what is said of an agent's configuration; the two settings that are always needed are added."""
    said = textwrap.dedent(text)
    needed = [line for line in ("cluster: w1", "manager: m:7443") if line.partition(" ")[0] not in said]
    return configuration(AGENT, "\n".join((*needed, said)))


def environment(assignment: str) -> str:
    """Return what is said of a setting in the environment."""
    name, _, value = assignment.partition("=")
    os.environ[name] = value
    try:
        return manager_file("")
    finally:
        del os.environ[name]


# --- manifests -----------------------------------------------------------------------------------------------------


def _denied(
    document: Any, old: Any | None = None, facts: WebhookFacts | None = None, reviewed: Reviewed | None = None
) -> str:
    """Send the review as the API server does; return the message of the denial."""
    kind: Any = reviewed or {"Pod": POD_KIND, "Job": JOB_KIND}[document["kind"]]
    request = {
        "uid": "u",
        "operation": "CREATE" if old is None else "UPDATE",
        "kind": {"kind": document["kind"]},
        "namespace": "ns",
        "object": document,
        "oldObject": old,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    question = review.read(json.dumps(body).encode())
    known = facts or WebhookFacts()
    if question.problem:
        answer = review.malformed(question)
    elif old is None:
        answer = review.deny("u", kind.validate_create(question.new, known))
    else:
        answer = review.deny("u", kind.validate_update(question.old, question.new, known))
    message: str = json.loads(answer)["response"]["status"]["message"]
    return message


def pod(text: str) -> str:
    """Return why a new Pod is denied."""
    return _denied({"kind": "Pod", **yaml.safe_load(textwrap.dedent(text))})


def grouped_pod(text: str) -> str:
    """Return why a new pod of a group is denied."""
    return _denied({"kind": "Pod", **yaml.safe_load(textwrap.dedent(text))}, reviewed=ReviewedMember())


def job(text: str) -> str:
    """Return why a new Job is denied."""
    return _denied({"kind": "Job", **yaml.safe_load(textwrap.dedent(text))})


def changed_job(text: str) -> str:
    """Return why a change is denied: two documents, before and after."""
    before, after = yaml.safe_load_all(textwrap.dedent(text))
    return _denied({"kind": "Job", **after}, {"kind": "Job", **before})


def elastic_job(text: str) -> str:
    """Return why a new Job is denied where Jobs may be elastic, as they are not yet in the product."""
    return _denied({"kind": "Job", **yaml.safe_load(textwrap.dedent(text))}, reviewed=ELASTIC_JOB_KIND)


def changed_elastic_job(text: str) -> str:
    """Return why a change is denied there: two documents, before and after."""
    before, after = yaml.safe_load_all(textwrap.dedent(text))
    return _denied({"kind": "Job", **after}, {"kind": "Job", **before}, reviewed=ELASTIC_JOB_KIND)


def _object(kind: type[Any], rules: Callable[[Any], list[validation.InvalidField]]) -> Callable[[str], str]:
    def said(text: str) -> str:
        document = {"metadata": {"name": "it"}, **yaml.safe_load(textwrap.dedent(text))}
        return "\n".join(str(each) for each in rules(msgspec.convert(document, kind)))

    return said


cluster_queue = _object(kueue.ClusterQueue, validation.cluster_queue_errors)
local_queue = _object(kueue.LocalQueue, validation.local_queue_errors)
flavor = _object(kueue.ResourceFlavor, validation.resource_flavor_errors)
cohort = _object(kueue.Cohort, validation.cohort_errors)
workload = _object(kueue.Workload, validation_workload.workload_errors)
elastic_workload = _object(kueue.Workload, validation_workload.elastic_errors)


# --- the wire ------------------------------------------------------------------------------------------------------


def report(*messages: Any, **parts: Any) -> Frame:
    """Make a frame of an agent."""
    return Frame(session=1, sequence=1, messages=messages, **parts)


KEY = PlacementKey("uid", 1)
FRAMES: dict[str, bytes | Frame] = {
    "bytes that are no frame": b"\xff",
    "a frame that is too large": b"\x00" * (limits.FRAME_BYTES_MAX + 1),
    "a placement without a workload": report(GatesLifted(key=PlacementKey("", 1))),
    "an epoch that cannot be": report(GatesLifted(key=PlacementKey("u", 0))),
    "a name that no object can have": report(ObjectReport(key=KEY, kind="Pod", name="x" * 300, uid="u", status=b"{}")),
    "a status that no API server takes": report(
        ObjectReport(key=KEY, kind="Pod", name="x", uid="u", status=b"x" * (2 << 20))
    ),
    "a clock that is no number": report(control=(LeaseRenew(sent_at=float("nan")),)),
    "credits below zero": report(control=(CreditGrant(credits=-1),)),
    "pods below zero": report(CountsReport(key=KEY, pod_sets=(PodSetCounts(name="m", active=-1),))),
}


def wire(name: str) -> str:
    """Return reason and text of the Close that an agent gets for what it wrote."""
    made = FRAMES[name]
    try:
        codec.decode_from_agent(made if isinstance(made, bytes) else codec.encode_from_agent(made))
    except WireViolation as violation:
        return f"{violation.reason.value}: {violation}"
    return "(accepted)"


def enrolment(asked: dict[str, Any]) -> str:
    """Return the refusal of an enrolment. Otherwise than `asked` says, all is as after `gatelift cluster add w1`."""
    spec = {"tokenDigest": tokens.digest(TOKEN), "tokenExpiresAt": "2027-12-01T00:00:00Z", **asked.get("spec", {})}
    used = {"enrolment": {"keyDigest": asked.get("used_by", ""), "tokenDigest": tokens.digest(TOKEN)}}
    document = {"metadata": {"name": "w1"}, "spec": spec, "status": used if "used_by" in asked else {}}
    cluster = asked.get("cluster", "w1")
    shown = {"": TOKEN, "wrong": TOKEN[:-1] + "x", "none": ""}[asked.get("token", "")]
    event = EnrolmentAsked(request_id=1, cluster=cluster, token=shown, key_digest="key", request=b"csr")
    found = msgspec.convert(document, WorkerCluster) if cluster == "w1" else None
    answers = Enrolments(WriteIds(), EnrolmentSettings()).asked(event, found, AT)
    (answer,) = [each for each in answers if isinstance(each, AnswerEnrolment)]
    return answer.text


# --- the command line ----------------------------------------------------------------------------------------------


def kubeconfig(text: str) -> str:
    """Return what is said of a kubeconfig."""
    with written(text) as path:
        try:
            asyncio.run(auto(str(path), None))
        except ConfigError as error:
            return str(error).replace(str(path), "FILE")
    return "(accepted)"


def command(line: str) -> str:
    """Run a command line without any API server; return exit code and what is printed on standard error."""
    with TemporaryDirectory() as folder:
        missing = Path(folder) / "missing"
        words = [word.replace("MISSING", str(missing)) for word in line.split()]
        return _ran(words, {"KUBECONFIG": str(missing)}).replace(str(missing), "MISSING")


def empty(_: FakeApiServer) -> None:
    """Have an API server without any objects of ours."""


def forbids(server: FakeApiServer) -> None:
    """Have an API server where this user may not list."""
    server.fault("GET", "/", times=9, status=403, body=status_of(403, "Forbidden", 'User "ada" cannot list resource'))


def expects_w1(server: FakeApiServer) -> None:
    """Have a cluster whose agent has not asked yet."""
    server.put(WORKER_CLUSTER, "w1", spec={}, status={})


def revokes_w1(server: FakeApiServer) -> None:
    """Have a revoked cluster of which no manager has taken note."""
    server.put(WORKER_CLUSTER, "w1", spec={"revoked": True}, status={"keyDigest": "k"})
    server.put(CONFIG_MAP, "gatelift-ca", "gatelift-system", data={"ca.crt": CA.decode()})


def broken_authority(server: FakeApiServer) -> None:
    """Have a Secret that somebody has edited."""
    server.put(SECRET, "gatelift-ca", "gatelift-system", data={"ca.crt": "eA=="})


def hangs_up(server: FakeApiServer) -> None:
    """Have an API server that breaks every connection."""
    server.fault("GET", "/", times=99, drop=True)


def against(server: Callable[[FakeApiServer], None]) -> Callable[[str], str]:
    """Return a door: a command line against an API server that is as `server` makes it."""

    def said(line: str) -> str:
        with _served() as fake:
            server(fake)
            user = {"name": "u", "user": {}}
            document = {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": fake.url}}],
                "users": [user],
            }
            with written(yaml.safe_dump(document)) as path:
                return _ran(line.split(), {"KUBECONFIG": str(path)}).replace(fake.url, "SERVER")

    return said


def _ran(words: list[str], environment_: dict[str, str]) -> str:
    result = CliRunner().invoke(app, words, env=environment_)
    assert result.exception is None or isinstance(result.exception, SystemExit), "a mistake ends in no stack trace"
    return f"{result.exit_code}: {result.stderr.strip()}"


@contextmanager
def _served() -> Iterator[FakeApiServer]:
    """Have an API server that runs in a thread and loop of its own, since a command line has a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(timeout=60)

    fake = FakeApiServer()
    run(fake.start())
    try:
        yield fake
    finally:
        run(fake.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=60)
        loop.close()


DOORS: dict[str, Callable[[Any], str]] = {
    "manager_file": manager_file,
    "nested_file": nested_file,
    "agent_file": agent_file,
    "environment": environment,
    "pod": pod,
    "grouped_pod": grouped_pod,
    "job": job,
    "changed_job": changed_job,
    "elastic_job": elastic_job,
    "changed_elastic_job": changed_elastic_job,
    "cluster_queue": cluster_queue,
    "local_queue": local_queue,
    "flavor": flavor,
    "cohort": cohort,
    "workload": workload,
    "elastic_workload": elastic_workload,
    "wire": wire,
    "enrolment": enrolment,
    "kubeconfig": kubeconfig,
    "command": command,
    **{f"command_{each.__name__}": against(each) for each in (empty, forbids, expects_w1, revokes_w1, hangs_up)},
    "command_broken_authority": against(broken_authority),
}
