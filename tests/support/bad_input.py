"""What a person sees of a mistake: one function a door, each drives the real code and returns the text shown.

Neighbour: the table in `test_bad_input`.
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
from gatelift.core.commands import AnswerEnrolment
from gatelift.core.enrolment import Enrolments, EnrolmentSettings
from gatelift.core.events import EnrolmentAsked
from gatelift.core.link_values import WriteIds
from gatelift.webhooks import review
from gatelift_admission import validation, validation_workload
from gatelift_agent import config as agent_config
from gatelift_kinds.registry import JOB_KIND, POD_KIND
from gatelift_kinds.review import WebhookFacts
from gatelift_kube.config import auto
from gatelift_kube.errors import ConfigError
from gatelift_kube.objects import kueue
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_wire import codec, tokens
from gatelift_wire.messages import Frame
from gatelift_wire.violations import WireViolation
from support.fake_apiserver import FakeApiServer

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


def agent_file(text: str) -> str:
    """Return what is said of an agent's configuration; the two settings that are always needed are there."""
    return configuration(AGENT, "cluster: w1\nmanager: m:7443\n" + textwrap.dedent(text))


def environment(assignment: str) -> str:
    """Return what is said of a setting in the environment."""
    name, _, value = assignment.partition("=")
    os.environ[name] = value
    try:
        return manager_file("")
    finally:
        del os.environ[name]


# --- manifests -----------------------------------------------------------------------------------------------------


def _denied(document: Any, old: Any | None = None, facts: WebhookFacts | None = None) -> str:
    """Send the review as the API server does; return the message of the denial."""
    kind: Any = {"Pod": POD_KIND, "Job": JOB_KIND}[document["kind"]]
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


def job(text: str) -> str:
    """Return why a new Job is denied."""
    return _denied({"kind": "Job", **yaml.safe_load(textwrap.dedent(text))})


def changed(text: str) -> str:
    """Return why a change is denied: two documents, before and after."""
    before, after = yaml.safe_load_all(textwrap.dedent(text))
    return _denied({"kind": "Job", **after}, {"kind": "Job", **before})


def _object(kind: type[Any], rules: Callable[[Any], list[validation.FieldError]]) -> Callable[[str], str]:
    def said(text: str) -> str:
        document = {"metadata": {"name": "it"}, **yaml.safe_load(textwrap.dedent(text))}
        return "\n".join(str(each) for each in rules(msgspec.convert(document, kind)))

    return said


cluster_queue = _object(kueue.ClusterQueue, validation.cluster_queue_errors)
local_queue = _object(kueue.LocalQueue, validation.local_queue_errors)
flavor = _object(kueue.ResourceFlavor, validation.resource_flavor_errors)
cohort = _object(kueue.Cohort, validation.cohort_errors)
workload = _object(kueue.Workload, validation_workload.workload_errors)


# --- the wire ------------------------------------------------------------------------------------------------------


def wire(made: bytes | Frame) -> str:
    """Return the text of the Close that an agent gets for what it wrote."""
    try:
        codec.decode_from_agent(made if isinstance(made, bytes) else codec.encode_from_agent(made))
    except WireViolation as violation:
        return f"{violation.reason.value}: {violation}"
    return "(accepted)"


def enrolment(asked: dict[str, str]) -> str:
    """Return the refusal of an enrolment; `spec` as JSON overrides what `gatelift cluster add w1` wrote."""
    spec = {"tokenDigest": tokens.digest(TOKEN), "tokenExpiresAt": "2027-12-01T00:00:00Z"}
    spec |= json.loads(asked.get("spec", "{}"))
    document = {"metadata": {"name": "w1"}, "spec": spec, "status": json.loads(asked.get("status", "{}"))}
    found = msgspec.convert(document, WorkerCluster) if asked.get("cluster", "w1") == "w1" else None
    event = EnrolmentAsked(
        request_id=1,
        cluster=asked.get("cluster", "w1"),
        token=asked.get("token", TOKEN),
        key_digest=asked.get("key", "k1"),
        request=b"csr",
    )
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


def against(server: Callable[[FakeApiServer], None]) -> Callable[[str], str]:
    """Return a door: a command line against an API server that is as `server` makes it."""

    def said(line: str) -> str:
        with _served() as (fake, run):
            server(fake)
            document = {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": fake.url}}],
                "users": [{"name": "u", "user": {}}],
            }
            with written(yaml.safe_dump(document)) as path:
                text = _ran(line.split(), {"KUBECONFIG": str(path)}).replace(fake.url, "SERVER")
            run(fake.stop())
            return text

    return said


def _ran(words: list[str], environment_: dict[str, str]) -> str:
    result = CliRunner().invoke(app, words, env=environment_)
    assert result.exception is None or isinstance(result.exception, SystemExit), "a mistake ends in no stack trace"
    return f"{result.exit_code}: {result.stderr.strip()}"


@contextmanager
def _served() -> Iterator[tuple[FakeApiServer, Callable[[Coroutine[Any, Any, None]], None]]]:
    """Have an API server that runs in a thread and loop of its own, since a command line has a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(timeout=5)

    fake = FakeApiServer()
    run(fake.start())
    try:
        yield fake, run
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=5)
        loop.close()
