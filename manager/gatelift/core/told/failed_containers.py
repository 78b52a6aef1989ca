"""What a worker says of the container that failed first: in Finished's message, and in an event at the user's object.

Texts for people: nothing is decided by them. `words` has cleaned them. Neighbours: `reports` takes the word, `telling`
tells it once Finished is written.
"""

from __future__ import annotations

from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import ref_of
from gatelift.core.state.core import Core
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.plain_text import ending
from gatelift_wire.values.messages import Finished
from gatelift_wire.values.told import FailedContainer

FAILED_ON_CLUSTER = "FailedOnCluster"
"""Reason of the Warning event at the user's object."""

EVENT_WORDS_MAX = 260
"""Bytes of last words in an event, which has a kilobyte for all: the longest names find their place beside it."""

HOUR = 3600.0


def of(message: Finished) -> FailedContainer | None:
    """Return what is told of an end; None where it succeeded."""
    return None if message.succeeded else message.failed


def finished(message: Finished) -> str:
    """Return the message of Finished: what the worker's object says, what failed first, for how long that stays."""
    failed = of(message)
    first = described(failed) if failed is not None else ""
    return "; ".join(filter(None, (message.message, first, "" if message.succeeded else kept(message.kept_seconds))))


def kept(seconds: float) -> str:
    """Return for how long what failed can be looked at where it ran; "" for what is not kept."""
    lasts = f"{round(seconds / HOUR, 1):g} h" if seconds >= HOUR else f"{max(1, round(seconds / 60.0))} min"
    return f"its objects stay there for up to {lasts}" if seconds > 0 else ""


def described(failed: FailedContainer, *, words_max: int = 0) -> str:
    """Return in one line pod, node, container, exit code, reason, last words (at most `words_max` bytes; 0: all)."""
    where = f"pod {failed.pod}" + (f" on node {failed.node}" if failed.node else "")
    which = f"container {failed.container}" if failed.container else "a container"
    what = f"{which} ended with exit code {failed.exit_code}" if failed.exit_code else "failed"
    reason = f" ({failed.reason})" if failed.reason else ""
    words = ending(failed.message, words_max) if words_max else failed.message
    return f"{where}: {what}{reason}" + (f": {words}" if words else "")


def tell(core: Core, known: Workload, attempt: Attempt) -> None:
    """Tell of it at the user's object, at the Workload where there is none."""
    outcome = attempt.outcome
    if outcome is None or outcome.failed is None:
        return
    said = described(outcome.failed, words_max=EVENT_WORDS_MAX), kept(outcome.kept_seconds)
    text = f'On cluster "{outcome.cluster}": {"; ".join(filter(None, said))}'
    owner = core.knowledge.work_of(known).stands_for_all
    ref, uid = (ref_of(known), known.metadata.uid) if owner is None else (owner.ref, owner.object.metadata.uid)
    core.event(ref, uid, FAILED_ON_CLUSTER, text, warning=True)
