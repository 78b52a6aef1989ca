"""Answers to requests about objects: one method a verb, from a parsed request to a body. Knows no HTTP library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gatelift_kube.values import timestamps
from gatelift_sandbox.embedded import answers, protobuf, rbac
from gatelift_sandbox.embedded.answers import Answer, Form
from gatelift_sandbox.embedded.documents import Document, at, encode
from gatelift_sandbox.embedded.drafts import Deletion, Draft, parsed
from gatelift_sandbox.embedded.failures import (
    RequestRefusedError,
    bad_request,
    method_not_allowed,
    no_such_path,
    unsupported_media_type,
)
from gatelift_sandbox.embedded.identity import Tokens
from gatelift_sandbox.embedded.kinds import ServedKind
from gatelift_sandbox.embedded.pipeline import Pipeline
from gatelift_sandbox.embedded.rbac import User
from gatelift_sandbox.embedded.requests import RequestInfo, flag, number, version_of
from gatelift_sandbox.embedded.reviews import REVIEWS
from gatelift_sandbox.embedded.selection import ListSelection, parse_fields, parse_labels
from gatelift_sandbox.embedded.store import patcher
from gatelift_sandbox.embedded.watches import Stored

LIMIT_MAX = 1_000_000
ORPHANS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set"
    " propagationPolicy=Orphan to suppress this warning"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request with all that belongs to it."""

    info: RequestInfo
    user: User
    query: Mapping[str, str]
    body: bytes
    content_type: str
    accept: str

    @property
    def form(self) -> Form:
        """Return how the client wants to see objects."""
        return answers.form_of(self.accept, self.query.get("includeObject", ""))

    @property
    def dry_run(self) -> bool:
        """Return whether nothing shall be kept."""
        return self.query.get("dryRun") == "All"

    def selection(self, kind: ServedKind) -> ListSelection:
        """Return what a list, watch or deletion of a collection selects; ApiError 400."""
        fields = parse_fields(self.query.get("fieldSelector", ""))
        for requirement in fields:
            if requirement.path not in kind.selectable:
                raise bad_request(f"field label not supported: {requirement.path}")
        if self.info.name:
            fields += parse_fields(f"metadata.name={self.info.name}")
        labels = parse_labels(self.query.get("labelSelector", ""))
        return ListSelection(namespace=self.info.namespace, labels=labels, fields=fields)


class Endpoints:
    """Serves all verbs but watch."""

    def __init__(self, pipeline: Pipeline, tokens: Tokens) -> None:
        self._pipeline = pipeline
        self._store = pipeline.store
        self._tokens = tokens

    async def respond(self, call: Call) -> Answer:
        """Return the answer; ApiError."""
        info = call.info
        review = next(
            (r for r in REVIEWS if (r.group, r.version, r.plural) == (info.group, info.version, info.plural)), None
        )
        if review is not None:
            if info.verb != "create":
                raise method_not_allowed()
            return self._review(call, review.kind)
        kind = self._store.kinds.find(info.group, info.version, info.plural)
        if kind.resource.namespaced and not info.namespace and info.verb != "list":
            raise no_such_path() if info.name else method_not_allowed()
        if info.subresource and info.subresource not in kind.subresources:
            raise no_such_path()
        answer = await self._serve(call, kind)
        if kind.warning:
            return _warned(answer, [kind.warning])
        return answer

    async def _serve(self, call: Call, kind: ServedKind) -> Answer:
        match call.info.verb, call.info.subresource:
            case "get", _:
                return self._get(call, kind)
            case "list", "":
                return self._list(call, kind)
            case "create", "":
                return await self._create(call, kind)
            case "create", "binding":
                return self._bind(call, kind)
            case "create", "token":
                return self._token(call, kind)
            case "update", "" | "status" | "finalize":
                return await self._update(call, kind)
            case "patch", "" | "status":
                return await self._patch(call, kind)
            case "delete", "":
                return await self._delete(call, kind)
            case "deletecollection", "":
                return await self._delete_collection(call, kind)
            case _:
                raise method_not_allowed()

    def _get(self, call: Call, kind: ServedKind) -> Answer:
        stored = self._store.get(kind, _namespace(call, kind), call.info.name)
        return self._object(call, kind, stored)

    def _object(self, call: Call, kind: ServedKind, stored: Stored, code: int = 200) -> Answer:
        return Answer(body=answers.object_body(kind, stored, call.form, self._pipeline.wall()), code=code)

    def _list(self, call: Call, kind: ServedKind) -> Answer:
        page = self._store.list(
            kind,
            call.selection(kind),
            limit=number(call.query, "limit", LIMIT_MAX),
            token=call.query.get("continue", ""),
            at_least=version_of(call.query) or 0,
        )
        return Answer(body=answers.list_body(kind, page, call.form, self._pipeline.wall()))

    async def _create(self, call: Call, kind: ServedKind) -> Answer:
        new = _document(call)
        stored, draft, warnings = await self._pipeline.create(
            call.user, kind, _namespace(call, kind), new, dry_run=_checked(call), strict=_strict(call)
        )
        return _warned(self._object(call, kind, stored, 201), warnings + _dropped(call, draft))

    async def _update(self, call: Call, kind: ServedKind) -> Answer:
        new = _document(call)
        stored, draft, warnings = await self._pipeline.update(
            call.user,
            kind,
            _namespace(call, kind),
            call.info.name,
            lambda _: parsed(call.body) if new is None else new,
            subresource=call.info.subresource,
            dry_run=_checked(call),
            strict=_strict(call),
        )
        code = 201 if draft.old is None else 200
        return _warned(self._object(call, kind, stored, code), warnings + _dropped(call, draft))

    async def _patch(self, call: Call, kind: ServedKind) -> Answer:
        stored, draft, warnings = await self._pipeline.update(
            call.user,
            kind,
            _namespace(call, kind),
            call.info.name,
            patcher(kind, call.body, call.content_type),
            subresource=call.info.subresource,
            patch=True,
            dry_run=_checked(call),
            strict=_strict(call),
        )
        return _warned(self._object(call, kind, stored), warnings + _dropped(call, draft))

    async def _delete(self, call: Call, kind: ServedKind) -> Answer:
        namespace, name = _namespace(call, kind), call.info.name
        deletion, dry_run = _deletion(call)
        told = [ORPHANS] if deletion.propagation is None and kind.rules.propagation == "Orphan" else []
        done, warnings = await self._pipeline.delete(call.user, kind, namespace, name, deletion, dry_run=dry_run)
        warnings += told
        if not done.gone or kind.rules.returns_deleted:
            return _warned(self._object(call, kind, done.stored), warnings)
        details: Document = {"name": name}
        if kind.resource.group:
            details["group"] = kind.resource.group
        details |= {"kind": kind.resource.plural, "uid": done.stored.uid}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return _warned(Answer(body=encode(status)), warnings)

    async def _delete_collection(self, call: Call, kind: ServedKind) -> Answer:
        deletion, dry_run = _deletion(call)
        page = self._store.list(kind, call.selection(kind))
        for stored in page.items:
            try:
                await self._pipeline.delete(call.user, kind, stored.namespace, stored.name, deletion, dry_run=dry_run)
            except RequestRefusedError as failure:
                if failure.code != 404:  # somebody else was faster
                    raise
        return Answer(body=answers.list_body(kind, page, call.form, self._pipeline.wall()))

    def _bind(self, call: Call, kind: ServedKind) -> Answer:
        binding = _document(call)
        node, uid = at(binding, "target", "name"), at(binding, "metadata", "uid")
        if not isinstance(node, str) or not node:
            raise bad_request("target.name: Required value: the node to bind to")
        if at(binding, "metadata", "name") != call.info.name:
            raise bad_request("name in URL does not match name in Binding object")
        self._store.bind(
            kind,
            call.info.namespace,
            call.info.name,
            node,
            self._pipeline.wall(),
            uid=uid if isinstance(uid, str) else "",
        )
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
        return Answer(body=encode(status), code=201)

    def _token(self, call: Call, kind: ServedKind) -> Answer:
        account = self._store.get(kind, call.info.namespace, call.info.name)
        request = _document(call)
        signed = self._tokens.sign(account.namespace, account.name, account.uid, self._pipeline.wall(), request)
        request["kind"], request["apiVersion"] = "TokenRequest", "authentication.k8s.io/v1"
        expires = timestamps.to_text(signed["expires"])
        request["spec"] = {"expirationSeconds": None, **(request.get("spec") or {}), "audiences": signed["audiences"]}
        request["status"] = {"token": signed["token"], "expirationTimestamp": expires}
        return Answer(body=encode(request), code=201)

    def _review(self, call: Call, kind: str) -> Answer:
        request = _document(call)
        spec = request.get("spec") or {}
        match kind:
            case "TokenReview":
                user = self._tokens.user(str(spec.get("token") or ""), self._store, self._pipeline.wall())
                status: Document = {"authenticated": user is not None}
                if user is not None:
                    status |= {"user": user.info(), "audiences": spec.get("audiences") or []}
                else:
                    status["error"] = "[invalid bearer token]"
            case "SelfSubjectReview":
                status = {"userInfo": call.user.info()}
            case _:
                asked = call.user
                if kind != "SelfSubjectAccessReview":
                    asked = User(name=str(spec.get("user") or ""), groups=tuple(spec.get("groups") or ()))
                wanted = rbac.review_request(spec.get("resourceAttributes") or {}, spec.get("nonResourceAttributes"))
                status = {"allowed": rbac.allowed(self._store, asked, wanted)}
        request |= {"kind": kind, "apiVersion": f"{call.info.group}/{call.info.version}", "status": status}
        return Answer(body=encode(request), code=201)


def _namespace(call: Call, kind: ServedKind) -> str:
    return call.info.namespace if kind.resource.namespaced else ""


def _document(call: Call) -> Document:
    if call.content_type == protobuf.CONTENT_TYPE:
        read = protobuf.document(call.body)
        if read is None:
            note = "; the embedded API server reads no protobuf of this kind, use `kubectl apply -f` with a manifest"
            raise unsupported_media_type([answers.JSON], note)
        return read
    if call.content_type not in (answers.JSON, ""):
        raise unsupported_media_type([answers.JSON])
    found: Any = parsed(call.body)
    if not isinstance(found, dict):
        raise bad_request("the request body is not a JSON object")
    return found


def _checked(call: Call) -> bool:
    """Return whether it is a dry run; ApiError 400 for parameters that are not understood."""
    for name, choices in (("dryRun", ("", "All")), ("fieldValidation", ("", "Ignore", "Warn", "Strict"))):
        if call.query.get(name, "") not in choices:
            raise bad_request(f"{name}: Unsupported value: {call.query[name]!r}: use {' or '.join(choices[1:])}")
    return call.dry_run


def _strict(call: Call) -> bool:
    return call.query.get("fieldValidation") == "Strict"


def _dropped(call: Call, draft: Draft) -> list[str]:
    """Say which fields were dropped, as a warning."""
    if call.query.get("fieldValidation", "Warn") != "Warn":
        return []
    return [f'unknown field "{path}"' for path in draft.dropped]


def _deletion(call: Call) -> tuple[Deletion, bool]:
    """Return what a delete says, in its body or its query, and whether it is a dry run."""
    body = parsed(call.body) if call.body else {}
    if not isinstance(body, dict):
        raise bad_request("the request body is not a JSON object")
    grace = body.get("gracePeriodSeconds")
    if grace is None and call.query.get("gracePeriodSeconds"):
        grace = number(call.query, "gracePeriodSeconds", LIMIT_MAX)
    if grace is not None and not isinstance(grace, int):
        raise bad_request(f"gracePeriodSeconds: {grace!r} is not a number")
    propagation = body.get("propagationPolicy") or call.query.get("propagationPolicy")
    orphan = body.get("orphanDependents", flag(call.query, "orphanDependents") or None)
    if propagation is None and orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    deletion = Deletion(
        grace_seconds=grace,
        uid=at(body, "preconditions", "uid"),
        version=at(body, "preconditions", "resourceVersion"),
        propagation=propagation,
    )
    return deletion, call.dry_run or body.get("dryRun") == ["All"]


def _warned(answer: Answer, warnings: list[str]) -> Answer:
    if not warnings:
        return answer
    return Answer(
        body=answer.body,
        code=answer.code,
        content_type=answer.content_type,
        headers=answer.headers,
        warnings=(*answer.warnings, *warnings),
    )
