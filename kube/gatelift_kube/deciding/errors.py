"""What may go wrong between us and an API server, as our own exceptions. Pure.

`from_status` turns an answer into an error, `write_error` turns an error into what a deciding core is told.
The texts that are matched here were taken from a real API server 1.36; they are the only way to tell some refusals
apart, since the server answers all of them with 403 or 422.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from gatelift_kube.deciding.writes import WriteError
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.unreadable import UNREADABLE

MESSAGE_CHARS_MAX = 4096
"""Longest text taken from a server: webhooks may answer anything, and the text ends in events and conditions."""


class KubeError(Exception):
    """Base of all errors of this package. `maybe_done`: a write may have happened although this was raised."""

    maybe_done = False


class ConfigError(KubeError):
    """No usable configuration; the text is one line for a person: what, where, what to do."""


class SettingsFileError(Exception):
    """A settings file cannot be used; each line of the text names a path, the rule and the way out."""


class UnreachableError(KubeError):
    """No answer: the connection could not be made (`maybe_done` false) or broke (true)."""

    def __init__(self, message: str, *, maybe_done: bool) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class TimedOutError(KubeError):
    """No answer in time. What was asked may still have been done."""

    maybe_done = True


class SilentError(TimedOutError):
    """A stream that was opened, and on which nothing came for as long as it may be silent."""

    maybe_done = False


class UndecodableError(KubeError):
    """The server answered with something that is not the object that was asked for."""

    maybe_done = True


@dataclass(frozen=True, slots=True)
class Cause:
    """One of `details.causes` of a metav1.Status."""

    reason: str = ""
    message: str = ""
    field: str = ""


class ApiError(KubeError):
    """The server said no: HTTP status, metav1.Status reason, text and causes."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        retry_after: float | None = None,
        causes: tuple[Cause, ...] = (),
        kind: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        """Seconds after which the server wants to be asked again."""
        self.causes = causes
        self.kind = kind
        """`details.kind`: plural name of what the server speaks of, not always of what was asked for."""

    def __str__(self) -> str:
        return f"{self.status} {self.reason}: {self.message}" if self.message else f"{self.status} {self.reason}"


class UnauthorizedError(ApiError):
    """401: no or an outdated credential."""


class ForbiddenError(ApiError):
    """403: authorization, quota, or an admission plugin."""


class NotFoundError(ApiError):
    """404."""


class ConflictError(ApiError):
    """409: the object changed meanwhile. That it is there, or that it is gone, is not said."""


class PreconditionError(ConflictError):
    """The object is not the one that was asked for: another UID (409, 422), or a JSON patch did not apply (422)."""


class AlreadyExistsError(ApiError):
    """409 with reason AlreadyExists."""


class GoneError(ApiError):
    """410: the resourceVersion or continue token is too old."""


class InvalidError(ApiError):
    """400 or 422: the object or patch is not valid."""


class ImpossibleNameError(InvalidError):
    """No API server was asked: no object can have that name, or live in a namespace of that name."""

    def __init__(self, message: str) -> None:
        super().__init__(422, "Invalid", message)


class TooLargeError(ApiError):
    """413: the request, or the object in etcd, is too large."""


class BusyError(ApiError):
    """429: not taken up; try again after `retry_after`."""


class ServerError(ApiError):
    """5xx. The server may have done it: 500 is also what a timeout of etcd looks like."""

    maybe_done = True


class _Details(msgspec.Struct, rename="camel"):
    kind: str = ""
    causes: list[dict[str, str]] = []
    retry_after_seconds: float = 0


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(_Status)

_BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    413: TooLargeError,
    422: InvalidError,
    429: BusyError,
}

_NOT_DONE_500 = ("failed calling webhook", "no endpoints available", "Unexpected error when reading response body")
"""500s that come from before the write: admission was not finished."""


_QUOTED_OBJECT = re.compile(r'Invalid value: "\{(?:[^"\\]|\\.)*"', re.DOTALL)
"""How an API server begins to say what is wrong with a patch: with the whole object, in front of the reason."""


def _without_object(message: str) -> str:
    """Return a message without the object that it quotes: who reads our log may not read everybody's environment."""
    return _QUOTED_OBJECT.sub("Invalid value: (the object)", message)[:MESSAGE_CHARS_MAX]


def from_status(status: int, body: bytes, retry_after: str = "") -> ApiError:
    """Return the error for an answer with an HTTP status of 300 or more; `retry_after` is the header of that name."""
    try:
        said = _STATUS.decode(body)
    except UNREADABLE:
        said = _Status(message=body[:MESSAGE_CHARS_MAX].decode("utf-8", "replace").strip())
    details = said.details or _Details()
    causes = tuple(
        Cause(cause.get("reason", ""), _without_object(cause.get("message", "")), cause.get("field", ""))
        for cause in details.causes
    )
    seconds = details.retry_after_seconds or whole(retry_after) or 0
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
    if said.reason == "AlreadyExists":
        kind = AlreadyExistsError
    elif status in (409, 422) and _is_failed_precondition(status, said.message, causes):
        kind = PreconditionError
    elif said.reason in ("Expired", "Gone"):
        kind = GoneError
    elif status >= 500 and "etcdserver: request is too large" in said.message:
        kind = TooLargeError
    error = kind(
        status,
        said.reason or f"HTTP{status}",
        _without_object(said.message),
        retry_after=seconds or None,
        causes=causes,
        kind=details.kind,
    )
    if isinstance(error, ServerError) and any(text in said.message for text in _NOT_DONE_500):
        error.maybe_done = False
    return error


PATCH_DID_NOT_APPLY = "the server rejected our request due to an error in our request"
"""All that API server 1.36 says where a JSON patch's `test` did not hold or its path is not there (422, no cause)."""

_FAILED_TEST = re.compile(r"\btest(ing)? .*(failed|does not match)")
_OTHER_UID = re.compile(r"the UID in the precondition \(.*\) does not match|Precondition failed: UID in precondition: ")
"""Texts of a 409: of a deletion whose UID is another one, and of a write that found another object in etcd."""


def _is_failed_precondition(status: int, message: str, causes: tuple[Cause, ...]) -> bool:
    """Tell an answer that means *the object is not the one you think* from what says only *try again*, or *wrong*."""
    if status == 409:
        return _OTHER_UID.search(message) is not None
    if message == PATCH_DID_NOT_APPLY and not causes:
        return True
    if any(cause.field == "metadata.uid" for cause in causes):
        return True  # a UID precondition of a merge patch: "field is immutable"
    return any(_FAILED_TEST.search(text) for text in (message, *(cause.message for cause in causes)))


_RBAC = re.compile(r'User ".*" cannot ')
_QUOTA = re.compile("(exceeded|failed|status unknown for) quota: |insufficient quota to match these scopes")
_WEBHOOK = re.compile(r'admission webhook ".*" denied the request|denied request: |ValidatingAdmissionPolicy')


def write_error(error: KubeError) -> WriteError:
    """Return what a core is told of a failed write.

    Whatever may have happened is UNKNOWN; what certainly did not, and may be tried again as it is, NOT_DONE.
    """
    if error.maybe_done:
        return WriteError.UNKNOWN
    if not isinstance(error, ApiError) or isinstance(error, ServerError | BusyError):
        return WriteError.NOT_DONE
    if _WEBHOOK.search(error.message):
        # First: a webhook picks its own status, so the text says more than the number.
        return WriteError.DENIED
    match error:
        case AlreadyExistsError():
            return WriteError.ALREADY_EXISTS
        case PreconditionError():
            return WriteError.PRECONDITION
        case ConflictError():
            return WriteError.CONFLICT
        case NotFoundError():
            return _not_found(error)
        case ForbiddenError():
            return _forbidden(error)
        case TooLargeError():
            return WriteError.TOO_LARGE
        case InvalidError():
            return WriteError.INVALID
        case UnauthorizedError():
            return WriteError.NOT_DONE  # our credential is at fault, not what was asked
        case _:
            return WriteError.UNKNOWN if error.status == 408 else WriteError.INVALID


def is_absent(error: KubeError) -> bool:
    """Say whether this is the API server's own word that there is no such object.

    A proxy before it, and a path that it does not serve, answer 404 as well: without a Status that says NotFound.
    """
    return isinstance(error, NotFoundError) and error.reason == "NotFound"


def _not_found(error: ApiError) -> WriteError:
    if not is_absent(error):
        return WriteError.NOT_DONE
    return WriteError.NAMESPACE_MISSING if error.kind == "namespaces" else WriteError.NOT_FOUND


def _forbidden(error: ApiError) -> WriteError:
    if any(cause.reason == "NamespaceTerminating" for cause in error.causes) or "is being terminated" in error.message:
        return WriteError.NAMESPACE_MISSING
    if _QUOTA.search(error.message):
        return WriteError.QUOTA
    if _RBAC.search(error.message):
        return WriteError.FORBIDDEN
    # What remains of 403 comes from admission plugins: LimitRanger, PodSecurity, ServiceAccount, Priority, ...
    return WriteError.DENIED
