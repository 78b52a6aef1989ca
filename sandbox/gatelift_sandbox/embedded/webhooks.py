"""Mutating and validating admission webhooks: whom to ask about a draft, the question, and what the answer means.

Differences to a real API server: a webhook that has several rules is asked once; mutating webhooks are not asked a
second time; webhooks are reached by URL only; of `matchConditions` those are understood that `conditions` understands.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from gatelift_sandbox.embedded import conditions, patching
from gatelift_sandbox.embedded.documents import Document, at, copied, decode, encode, items, meta
from gatelift_sandbox.embedded.drafts import Draft
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_sandbox.embedded.kinds import ServedKind, StorageKey
from gatelift_sandbox.embedded.rbac import RbacReader, User
from gatelift_sandbox.embedded.selection import label_match, selector_of
from gatelift_sandbox.embedded.watches import Stored

_GROUP = "admissionregistration.k8s.io"
MUTATING: StorageKey = (_GROUP, "mutatingwebhookconfigurations")
VALIDATING: StorageKey = (_GROUP, "validatingwebhookconfigurations")
TIMEOUT_SECONDS = 10
TIMEOUT_SECONDS_MAX = 30
ANSWER_BYTES_MAX = 8 * 1024 * 1024
CONTEXTS_MAX = 64
"""CA bundles whose TLS settings are kept; they change when certificates rotate."""


@dataclass(slots=True, kw_only=True)
class AdmissionQuestion:
    """What is being admitted. `new` may be changed by answers."""

    operation: str  # CREATE, UPDATE, DELETE
    kind: ServedKind
    namespace: str
    name: str
    subresource: str
    user: User
    new: Document | None
    old: Document | None
    dry_run: bool

    def request(self, uid: str) -> Document:
        """Return the request of an AdmissionReview."""
        resource = self.kind.resource
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        place = {"group": resource.group, "version": resource.version, "resource": resource.plural}
        found: Document = {"uid": uid, "kind": kind, "resource": place, "requestKind": kind, "requestResource": place}
        if self.subresource:
            found |= {"subResource": self.subresource, "requestSubResource": self.subresource}
        if self.name:
            found["name"] = self.name
        if self.namespace:
            found["namespace"] = self.namespace
        found |= {"operation": self.operation, "userInfo": self.user.info(), "object": self.new, "oldObject": self.old}
        return found | {"dryRun": self.dry_run, "options": None}


class Webhooks:
    """Asks the webhooks that are configured in the store, in the order of their configurations' names."""

    def __init__(self, store: RbacReader, uid: Callable[[], str]) -> None:
        self._store = store
        self._uid = uid
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def close(self) -> None:
        """Close connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def review(self, draft: Draft, user: User, *, dry_run: bool) -> list[str]:
        """Let webhooks change or refuse a draft (ApiError); return their warnings."""
        mutating, validating = self._configured(MUTATING), self._configured(VALIDATING)
        if not mutating and not validating:
            return []
        question = AdmissionQuestion(
            operation="UPDATE" if draft.old is not None else "CREATE",
            kind=draft.kind,
            namespace=draft.namespace,
            name=draft.name,
            subresource=draft.subresource,
            user=user,
            new=draft.new,
            old=draft.old_document,
            dry_run=dry_run,
        )
        warnings = []
        for webhook in mutating:
            if self._concerns(webhook, question):
                warnings += await self._ask(webhook, question, mutates=True)
        draft.new = question.new or draft.new
        draft.dropped += draft.kind.rules.default(draft.new)
        for webhook in validating:
            if self._concerns(webhook, question):
                warnings += await self._ask(webhook, question, mutates=False)
        return warnings

    async def review_delete(self, kind: ServedKind, stored: Stored, user: User, *, dry_run: bool) -> list[str]:
        """Let webhooks refuse a delete (ApiError); return their warnings."""
        webhooks = self._configured(MUTATING) + self._configured(VALIDATING)
        if not webhooks:
            return []
        question = AdmissionQuestion(
            operation="DELETE",
            kind=kind,
            namespace=stored.namespace,
            name=stored.name,
            subresource="",
            user=user,
            new=None,
            old=kind.served(stored.document()),
            dry_run=dry_run,
        )
        warnings = []
        for webhook in webhooks:
            if self._concerns(webhook, question):
                warnings += await self._ask(webhook, question, mutates=False)
        return warnings

    def _configured(self, storage: StorageKey) -> list[Document]:
        found = sorted(self._store.look_all(storage), key=lambda each: str(meta(each)["name"]))
        return [webhook for configuration in found for webhook in items(configuration, "webhooks")]

    def _concerns(self, webhook: Document, question: AdmissionQuestion) -> bool:
        if question.kind.resource.group == _GROUP:
            return False  # or a broken webhook could not be repaired
        if not any(_rule_fits(rule, question) for rule in items(webhook, "rules")):
            return False
        labels = self._namespace_labels(question)
        if labels is not None and not label_match(selector_of(webhook.get("namespaceSelector") or {}), labels):
            return False
        selector = selector_of(webhook.get("objectSelector") or {})
        seen = [each for each in (question.new, question.old) if each is not None]
        if not any(label_match(selector, meta(each).get("labels") or {}) for each in seen):
            return False
        variables: Document = {
            "object": question.new,
            "oldObject": question.old,
            "request": question.request(""),
        }
        return all(conditions.holds(str(c.get("expression")), variables) for c in items(webhook, "matchConditions"))

    def _namespace_labels(self, question: AdmissionQuestion) -> dict[str, str] | None:
        """Return the labels that a namespaceSelector looks at, None for cluster-scoped objects."""
        if question.kind.storage == ("", "namespaces"):
            return meta(question.new or question.old or {}).get("labels") or {}
        if not question.namespace:
            return None
        found = self._store.look(("", "namespaces"), "", question.namespace)
        return meta(found).get("labels") or {} if found is not None else {}

    async def _ask(self, webhook: Document, question: AdmissionQuestion, *, mutates: bool) -> list[str]:
        name, uid = str(webhook.get("name")), self._uid()
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": question.request(uid)}
        try:
            answer = await self._call(webhook, encode(review))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as failure:
            if webhook.get("failurePolicy", "Fail") == "Ignore":
                return []
            text = f'failed calling webhook "{name}": failed to call webhook: {failure or type(failure).__name__}'
            raise RequestRefusedError(500, "InternalError", f"Internal error occurred: {text}") from None
        response = answer.get("response") or {}
        if not response.get("allowed"):
            raise _denied(name, response.get("status") or {})
        if mutates and response.get("patch") and question.new is not None:
            question.new = _patched(name, question.new, response["patch"])
        return [str(warning) for warning in response.get("warnings") or ()]

    async def _call(self, webhook: Document, body: bytes) -> Document:
        url = at(webhook, "clientConfig", "url")
        if not url:
            raise ValueError("webhooks of the embedded API server are reached by clientConfig.url only")
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=False)
        seconds = min(float(webhook.get("timeoutSeconds") or TIMEOUT_SECONDS), TIMEOUT_SECONDS_MAX)
        async with self._session.post(
            url,
            data=body,
            ssl=self._context(str(at(webhook, "clientConfig", "caBundle") or "")),
            headers={"Content-Type": "application/json"},
            params={"timeout": f"{seconds:.0f}s"},
            timeout=aiohttp.ClientTimeout(total=seconds),
        ) as response:
            raw = await response.content.read(ANSWER_BYTES_MAX)
            if not response.ok:
                raise ValueError(f"the server answered {response.status} {raw[:200].decode(errors='replace')}")
            answer: Any = decode(raw)
            if not isinstance(answer, dict):
                raise ValueError("the answer is no AdmissionReview")  # noqa: TRY004 (its data are wrong, not our types)
            return answer

    def _context(self, bundle: str) -> ssl.SSLContext:
        found = self._contexts.get(bundle)
        if found is None:
            authorities = base64.b64decode(bundle).decode() if bundle else None
            found = ssl.create_default_context(cadata=authorities)
            if len(self._contexts) >= CONTEXTS_MAX:
                self._contexts.clear()
            self._contexts[bundle] = found
        return found


def _rule_fits(rule: Document, question: AdmissionQuestion) -> bool:
    resource = question.kind.resource
    wanted = f"{resource.plural}/{question.subresource}" if question.subresource else resource.plural
    scope = rule.get("scope") or "*"
    return (
        _has(rule.get("operations"), question.operation)
        and _has(rule.get("apiGroups"), resource.group)
        and _has(rule.get("apiVersions"), resource.version)
        and scope in ("*", "Namespaced" if resource.namespaced else "Cluster")
        and any(_resource_fits(str(each), wanted) for each in rule.get("resources") or ())
    )


def _has(values: list[str] | None, wanted: str) -> bool:
    return any(value in ("*", wanted) for value in values or ())


def _resource_fits(pattern: str, wanted: str) -> bool:
    plural, _, subresource = wanted.partition("/")
    return (
        pattern in (wanted, "*/*")
        or (pattern == "*" and not subresource)
        or pattern
        in (
            f"{plural}/*",
            f"*/{subresource}",
        )
    )


def _denied(name: str, status: Document) -> RequestRefusedError:
    text = status.get("message") or status.get("reason")
    message = f'admission webhook "{name}" denied the request' + (f": {text}" if text else " without explanation")
    code = status.get("code") or 403
    reason = status.get("reason") if status.get("message") else ""
    return RequestRefusedError(
        int(code), reason or ("Forbidden" if code == 403 else ""), message, status.get("details") or {}
    )


def _patched(name: str, new: Document, patch: str) -> Document:
    try:
        operations = decode(base64.b64decode(patch))
        return patching.json_patch(copied(new), operations)
    except (binascii.Error, msgspec.MsgspecError, RequestRefusedError) as failure:
        text = f'Internal error occurred: the patch of webhook "{name}" cannot be carried out: {failure}'
        raise RequestRefusedError(500, "InternalError", text) from None
