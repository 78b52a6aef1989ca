from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatelift_wire.sessions.session import SessionState
from gatelift_wire.sessions.session_agent import AgentSession
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Applied, Forget
from support.wire.session_link import End, Link

STEPS = st.one_of(
    st.sampled_from(
        [
            "agent says",
            "manager says",
            "to agent",
            "to manager",
            "to agent twice",
            "to manager twice",
            "cut and lose",
            "cut and delay",
            "late",
            "agent restarts",
            "network down",
            "network up",
        ]
    ),
    st.sampled_from([0.06, 0.7, 3.0, 12.0, 70.0]),
)


class Story:
    def __init__(self) -> None:
        self.link = Link(AgentSession(instance="agent-0", jitter=0.3), ManagerSession(instance="manager-0"))
        self.said = 0

    def take(self, step: str | float) -> None:
        link = self.link
        if isinstance(step, float):
            link.wait(step)
            return
        self.said += 1
        key = PlacementKey("u", self.said)
        {
            "agent says": lambda: link.say(link.agent, Applied(key=key)),
            "manager says": lambda: link.say(link.manager, Forget(key=key)),
            "to agent": lambda: link.deliver(link.agent),
            "to manager": lambda: link.deliver(link.manager),
            "to agent twice": lambda: link.deliver(link.agent, twice=True),
            "to manager twice": lambda: link.deliver(link.manager, twice=True),
            "cut and lose": lambda: link.cut(lose=True),
            "cut and delay": lambda: link.cut(lose=False),
            "late": link.arrive_late,
            "agent restarts": self.restart,
            "network down": self.down,
            "network up": self.up,
        }[step]()
        self.check()

    def down(self) -> None:
        self.link.up = False
        self.link.cut(lose=True)

    def up(self) -> None:
        self.link.up = True

    def restart(self) -> None:
        """Start a new agent process: it knows the session and term that were kept in the worker, and nothing else."""
        link = self.link
        link.cut(lose=True)
        old = link.agent_session
        link.agent_session = AgentSession(
            instance=f"agent-{self.said}", last_session=old.session, last_term=old.seen_term, jitter=0.3
        )
        link.agent_session._last_stream = old._last_stream
        link.agent = End(link.agent_session)
        link._take(link.agent, link.agent_session.start(link.now))

    def check(self) -> None:
        """Check that what came in a lineage is a beginning of what was sent in it: in order, once, with no gap."""
        for sender, receiver in ((self.link.agent, self.link.manager), (self.link.manager, self.link.agent)):
            came = receiver.came[receiver.lineage]
            if receiver.lineage in sender.sent:
                assert came == sender.sent[receiver.lineage][: len(came)]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, min_size=5, max_size=80))
def test_each_message_comes_once_and_in_order_within_its_lineage(steps: list[str | float]) -> None:
    story = Story()
    story.link.settle()
    for step in steps:
        story.take(step)
    link = story.link
    link.settle()
    assert link.agent.lineage == link.manager.lineage
    assert link.manager.came[link.manager.lineage] == link.agent.sent[link.agent.lineage]
    assert link.agent.came[link.agent.lineage] == link.manager.sent[link.manager.lineage]
    protocol = [text for end in (link.agent, link.manager) for text in end.violations if "VIOLATION" in text]
    assert protocol == []


def test_a_cut_between_two_processes_loses_nothing() -> None:
    story = Story()
    link = story.link
    link.settle()
    for _ in range(3):
        story.take("agent says")
        story.take("manager says")
        story.take("cut and lose")
        link.settle()
    assert link.agent.lineage == link.manager.lineage == 1
    assert len(link.manager.came[1]) == len(link.agent.came[1]) == 3
    assert link.agent.session.session == link.manager.session.session == 4


def test_a_new_agent_process_starts_a_new_lineage() -> None:
    story = Story()
    story.link.settle()
    story.take("manager says")
    story.take("agent restarts")
    story.link.settle()
    assert story.link.agent.lineage == story.link.manager.lineage == 2
    assert story.link.agent.came[2] == []


def test_both_ends_rest_open_and_renew_for_an_hour() -> None:
    story = Story()
    story.link.settle()
    for _ in range(3600):
        story.link.wait(1.0)
        while story.link.deliver(story.link.manager) or story.link.deliver(story.link.agent):
            pass
    assert story.link.agent.session.session == 1
    assert story.link.agent.session.state is SessionState.OPEN
    assert story.link.agent_session.lease_valid(story.link.now)
