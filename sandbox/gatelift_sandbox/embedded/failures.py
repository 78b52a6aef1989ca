"""Refusals of the API server, with the reasons, codes and texts that Kubernetes clients know. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gatelift_kube.values.resources import Resource
from gatelift_sandbox.embedded.documents import Document, encode

CAUSES = {
    "Required value": "FieldValueRequired",
    "Invalid value": "FieldValueInvalid",
    "Duplicate value": "FieldValueDuplicate",
    "Unsupported value": "FieldValueNotSupported",
    "Forbidden": "FieldValueForbidden",
    "Not found": "FieldValueNotFound",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
}


class RequestRefusedError(Exception):
    """A refused request; becomes a `Status` object. The message is what kubectl prints."""

    def __init__(
        self, code: int, reason: str, message: str, details: Document | None = None, *, retry_after: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def status(self) -> Document:
        """Return the metav1.Status."""
        status: Document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """One rule of one field that an object breaks, in Kubernetes' words."""

    field: str
    rule: str
    detail: str = ""
    cause: str = ""
    """Reason of the cause where the rule does not say it."""

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"

    @property
    def text(self) -> str:
        """Return the error without its field."""
        return f"{self.rule}: {self.detail}" if self.detail else self.rule


def required(field: str, detail: str = "") -> BrokenRule:
    """Return the error of a missing field."""
    return BrokenRule(field, "Required value", detail)


def wrong(field: str, value: Any, detail: str) -> BrokenRule:
    """Return the error of a field whose value breaks a rule."""
    return BrokenRule(field, "Invalid value", f"{shown(value)}: {detail}")


def forbidden_field(field: str, detail: str) -> BrokenRule:
    """Return the error of a field that may not be set or changed."""
    return BrokenRule(field, "Forbidden", detail)


def unsupported(field: str, value: Any, choices: Sequence[str]) -> BrokenRule:
    """Return the error of a value that is not one of the choices."""
    offered = ", ".join(f'"{choice}"' for choice in choices)
    return BrokenRule(field, "Unsupported value", f"{shown(value)}: supported values: {offered}")


def duplicate(field: str, value: Any) -> BrokenRule:
    """Return the error of a key that is there twice."""
    return BrokenRule(field, "Duplicate value", shown(value))


def shown(value: Any) -> str:
    """Return a value as Kubernetes quotes it: texts in quotes, the rest as JSON."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return encode(value).decode()


def _qualified(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _details(resource: Resource, name: str, kind: str = "") -> Document:
    details: Document = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = kind or resource.plural
    return details


def not_found(resource: Resource, name: str) -> RequestRefusedError:
    """404: no object of that name."""
    return RequestRefusedError(404, "NotFound", f'{_qualified(resource)} "{name}" not found', _details(resource, name))


def no_such_path() -> RequestRefusedError:
    """404: nothing is served at this path."""
    return RequestRefusedError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: Resource, name: str) -> RequestRefusedError:
    """409: an object of that name is there."""
    return RequestRefusedError(
        409, "AlreadyExists", f'{_qualified(resource)} "{name}" already exists', _details(resource, name)
    )


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(resource: Resource, name: str, text: str = MODIFIED) -> RequestRefusedError:
    """409: resourceVersion or a precondition does not hold."""
    message = f'Operation cannot be fulfilled on {_qualified(resource)} "{name}": {text}'
    return RequestRefusedError(409, "Conflict", message, _details(resource, name))


def precondition(resource: Resource, name: str, text: str) -> RequestRefusedError:
    """409: a precondition of a delete does not hold. Names the kind, not the plural, as the real server does."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'Operation cannot be fulfilled on {kind} "{name}": {text}'
    return RequestRefusedError(409, "Conflict", message, _details(resource, name, resource.kind))


def invalid(resource: Resource, name: str, errors: Sequence[BrokenRule]) -> RequestRefusedError:
    """422: the object breaks rules."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    unique = list(dict.fromkeys(errors))
    text = str(unique[0]) if len(unique) == 1 else "[" + ", ".join(map(str, unique)) + "]"
    details = _details(resource, name, resource.kind)
    details["causes"] = [
        {"reason": e.cause or CAUSES.get(e.rule, "FieldValueInvalid"), "message": e.text, "field": e.field}
        for e in unique
    ]
    return RequestRefusedError(422, "Invalid", f'{kind} "{name}" is invalid: {text}', details)


def forbidden(resource: Resource, name: str, text: str, causes: Sequence[Document] = ()) -> RequestRefusedError:
    """403: admission says no."""
    about = f'{_qualified(resource)} "{name}"' if name else _qualified(resource)
    details = _details(resource, name)
    if causes:
        details["causes"] = list(causes)
    return RequestRefusedError(403, "Forbidden", f"{about} is forbidden: {text}", details)


def bad_request(text: str) -> RequestRefusedError:
    """400: the request itself is wrong."""
    return RequestRefusedError(400, "BadRequest", text)


def unprocessable(text: str) -> RequestRefusedError:
    """422: a patch that cannot be carried out, a failed `test` of a JSON patch among them.

    A real API server does not say which operation it was (`text`); neither do we, so that nobody relies on it.
    """
    message = "the server rejected our request due to an error in our request"
    failure = RequestRefusedError(422, "Invalid", message, {})
    failure.add_note(text)
    return failure


def expired(text: str) -> RequestRefusedError:
    """410: that resourceVersion is no longer in the history."""
    return RequestRefusedError(410, "Expired", text)


def method_not_allowed() -> RequestRefusedError:
    """405: the path is there, the method is not."""
    text = "the server does not allow this method on the requested resource"
    return RequestRefusedError(405, "MethodNotAllowed", text, {})


def unsupported_media_type(accepted: Sequence[str], note: str = "") -> RequestRefusedError:
    """415: a body in a form that is not understood here."""
    text = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return RequestRefusedError(415, "UnsupportedMediaType", f"{text}{note}", {})


def too_large_version(asked: int, current: int) -> RequestRefusedError:
    """504: the client has seen a version that this server has not."""
    text = f"Timeout: Too large resource version: {asked}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return RequestRefusedError(504, "Timeout", text, {"causes": causes, "retryAfterSeconds": 1}, retry_after=1)
