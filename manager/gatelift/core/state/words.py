"""What agents say in words, made fit for statuses and for people where it comes in. Pure.

Texts are cut and cleaned, since nothing is decided by them; names, UIDs and keys are refused by the wire's own rules,
and never cut. A reason is a reason by Kubernetes' pattern for them, or is none. Neighbour: `reports` calls.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

from gatelift_kinds.shared.pod_trouble import TEXT_CHARS_MAX
from gatelift_kube.values.plain_text import plain
from gatelift_wire.values.messages import (
    Bid,
    CountsReport,
    Evicted,
    Finished,
    Message,
    Refused,
    Stopped,
)
from gatelift_wire.values.sizes import SizeRefused
from gatelift_wire.values.told import FailedContainer

REASON_CHARS_MAX = 316
"""The wire's own bound of a word; Kubernetes lets a reason have 1,024."""
CONTAINER_REASON_CHARS_MAX = 63
"""Of why a container ended; kubelets know some twenty short words. An event has room for no more."""
_REASON = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")
"""metav1.Condition.reason, which the CRDs of Kueue hold a Workload to."""

MessageT = TypeVar("MessageT", bound=Message)


def cleaned(message: MessageT) -> MessageT:
    """Return a report with its texts in one plain line of at most `SHOWN_CHARS_MAX`, its reason a reason or ""."""
    match message:
        case Finished(failed=failed) if failed is not None:
            bare = cleaned(replace(message, failed=None))
            return replace(bare, failed=_of_container(failed))
        case Finished() | Stopped() | Evicted():
            reason = message.reason if is_reason(message.reason) else ""
            return replace(message, reason=reason, message=plain(message.message))
        case CountsReport() if message.troubles:
            said = tuple(replace(one, text=plain(one.text, TEXT_CHARS_MAX)) for one in message.troubles)
            return replace(message, troubles=said)
        case Refused() | Bid() | SizeRefused():
            return replace(message, text=plain(message.text))
        case _:
            return message


def _of_container(failed: FailedContainer) -> FailedContainer:
    """Return it with its words in one plain line; the wire bounds them (`LAST_WORDS_MAX`), and what matters is last."""
    short = len(failed.reason) <= CONTAINER_REASON_CHARS_MAX and is_reason(failed.reason)
    reason = failed.reason if short else ""
    return replace(failed, reason=reason, message=plain(failed.message.strip()))


def is_reason(text: str) -> bool:
    """Return whether a text can be the reason of a condition."""
    return len(text) <= REASON_CHARS_MAX and _REASON.fullmatch(text) is not None
