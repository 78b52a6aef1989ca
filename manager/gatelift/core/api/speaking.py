"""Who speaks for a worker cluster: one agent, whose replicas take turns by one Lease; another once it is lost. Pure.

Two agents of one identity beside each other (installed twice, or a Secret copied into another cluster) are bound by no
Lease: either may create and lift while the other says that nothing is there. So whoever is served stays served, and the
other one is turned away, which is shown. It is let in when the cluster is lost, which is later than the right to start
of who was served and his last write (R1, R2), and only with a *ticket*: it has listed everything since then (R8). What
it does not list then is in doubt all the same (`identity`): what the former one kept for itself it cannot know.
Neighbours: `cluster_record` (holds one of these), `gatelift_wire.values.speakers`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gatelift_kube.objects.gatelift import WorkerCluster, WorkerClusterStatus
from gatelift_kube.values.plain_text import plain
from gatelift_wire.sessions.session import GreetingReceived
from gatelift_wire.values import speakers
from gatelift_wire.values.messages import Hello
from gatelift_wire.values.speakers import Speaker

BESIDE_SECONDS = 180.0
"""How long a second agent is shown after it was turned away: it greets again after 20 s and the time of its lists."""


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """Why the greeting on a stream is refused; with a `ticket` the next one is taken."""

    stream_id: int
    text: str
    ticket: str = ""


class AgentDoor:
    """Lets agents of one cluster in. `made` returns a ticket that nobody ever had, of any process or term."""

    def __init__(self, made: Callable[[], str]) -> None:
        self._made = made
        self._ticket = ""
        self._beside = Speaker("", "")
        self.beside_until: float | None = None

    def close(self) -> None:
        """Give out new tickets from now on: somebody is served, or this process leads no more."""
        self._ticket = ""

    def refusal(self, found: WorkerCluster, greeting: GreetingReceived, *, lost: bool) -> TurnedAway | None:
        """Return why who greets is not served, None when he is; `lost`: that stands in the status of `found`."""
        served = recorded(found.status)
        if not served.is_another(speakers.of(greeting.hello)):
            return None
        if not lost:
            text = f"agent {found.status.agent_instance} serves this cluster, by {_lease(served)}"
            return TurnedAway(greeting.stream_id, text)
        if self._ticket and greeting.hello.ticket == self._ticket:
            return None
        self._ticket = self._ticket or self._made()
        text = "list everything anew and greet again: then this agent takes over"
        return TurnedAway(greeting.stream_id, text, self._ticket)

    def beside(self, status: WorkerClusterStatus, hello: Hello, now: float) -> str:
        """Take that another agent greets beside who is served; returns what people are told of it."""
        self._beside, self.beside_until = speakers.of(hello), now + BESIDE_SECONDS
        who, served = _lease(self._beside), f"{status.agent_instance} ({_lease(recorded(status))})"
        return plain(
            f"Agent {hello.instance} ({who}) greets as this cluster, too, and is turned away: served is {served}. "
            "A cluster has one agent: uninstall one of the two. When the one that is served is gone, the other one "
            "takes over as soon as the cluster is lost"
        )

    def shown(self, now: float) -> None:
        """Go on with what an earlier leader has shown."""
        self.beside_until = now + BESIDE_SECONDS

    def over(self, now: float, served: Hello | None = None) -> bool:
        """Say whether nobody greets beside who is served any more: not for long, or it is `served` itself now."""
        if self.beside_until is None:
            return False
        if now < self.beside_until and (served is None or speakers.of(served) != self._beside):
            return False
        self.beside_until = None
        return True


def recorded(status: WorkerClusterStatus) -> Speaker:
    """Return who was served last."""
    return Speaker(status.cluster_uid, status.agent_lease)


def _lease(speaker: Speaker) -> str:
    return f"Lease {speaker.lease or 'unknown'} in cluster {speaker.cluster_uid or 'unknown'}"
