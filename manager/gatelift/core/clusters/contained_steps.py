"""Steps of links, each apart: what raises about one cluster ends its session, and keeps no other from its leases.

A step that nobody asks for again is owed until it could be taken. Neighbours: `links` (has all steps taken here),
`owed_steps` (what is owed), `link_index` (refreshed after each).
"""

from __future__ import annotations

from gatelift.core.api import events
from gatelift.core.api.commands import CloseAgentStream, Note
from gatelift.core.clusters.link import Link
from gatelift.core.clusters.link_index import LinkIndex
from gatelift.core.clusters.linking import Effects
from gatelift.core.clusters.owed_steps import OwedSteps, Take
from gatelift_kube.deciding.contained import Contained
from gatelift_wire.values.messages import Close
from gatelift_wire.values.refusals import CloseReason


class ContainedSteps:
    """Takes steps of the links of an index."""

    def __init__(self, index: LinkIndex, contained: Contained[str]) -> None:
        self._index = index
        self._contained = contained
        self.owed = OwedSteps()

    def apart(self, link: Link, step: Take, now: float, out: Effects) -> float:
        """Let a link take a step; an exception belongs to its cluster, and the others take theirs.

        Returns 0, or when what raised may be tried again.
        """
        try:
            step(now, out)
            self._index.refresh(link)
        except Exception as error:  # noqa: BLE001 (containment: one cluster keeps no other from its leases)
            return self.failed(link.name, error, now, out)
        return 0.0

    def owing(self, link: Link, kind: str, step: Take, now: float, out: Effects) -> None:
        """Let a link take a step that nobody asks for again: it is owed until it could be taken."""
        again_at = self.apart(link, step, now, out)
        if again_at:
            self.owed.owe(link.name, kind, step, again_at)
        elif self.owed:
            self.owed.paid(link.name, kind)

    def take_owed(self, now: float, out: Effects) -> None:
        """Let each link take what it is owed and may be tried again."""
        for name in self.owed.due(now):
            for kind, step in self.owed.of(name):
                self.owing(self._index.links[name], kind, step, now, out)

    def failed(self, about: str, error: Exception, now: float, out: Effects) -> float:
        """Take that something raised an exception: the sessions of a cluster end and begin anew. Return for how long.

        More exactly: until when what raised is to rest.
        """
        cluster = about if about in self._index.links else ""
        failure = self._contained.failed(about, error, now)
        fields = (("traceback", failure.where),)
        out.commands.append(Note(level="warning", text=f"not taken: {failure.text}", cluster=cluster, fields=fields))
        try:
            self.break_off(cluster, events.NOT_TAKEN, now, out)
            self._close_all(cluster, out)
        except Exception as again:  # noqa: BLE001 (containment: then its streams are closed without a word of its link)
            self._contained.failed(f"break off {cluster}", again, now)
            self._close_all(cluster, out)
        return failure.again_at

    def break_off(self, cluster: str, text: str, now: float, out: Effects) -> None:
        """End the session of a cluster; its agent greets anew."""
        link = self._index.links.get(cluster)
        if link is not None:
            link.break_off(text, now, out)
            self._index.refresh(link)

    def _close_all(self, cluster: str, out: Effects) -> None:
        """Close each stream of a cluster that nobody has closed yet: its session may not know of it."""
        closed = {each.stream_id for each in out.commands if isinstance(each, CloseAgentStream)}
        streams = sorted(
            stream for stream, name in self._index.streams.items() if name == cluster and stream not in closed
        )
        close = Close(reason=CloseReason.SHUTTING_DOWN, text=events.NOT_TAKEN)
        out.commands += [CloseAgentStream(stream_id=stream, close=close) for stream in streams]
