"""Plays the two session machines from transcript lines (see `transcripts`) and renders what they put out.

Events: `@T` sets the clock before anything else; `tick`, `opened N`, `closed N text`, `bad N REASON text`,
`frame N session=5 term=1 sequence=1 acknowledged=0 : VALUE : VALUE`, and the machines' methods by name.
"""

from __future__ import annotations

from collections.abc import Callable

from gatelift_wire.sessions import session as wire
from gatelift_wire.sessions.session_agent import AgentSession
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values import inventory, keys, messages, refusals
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.messages import Frame
from gatelift_wire.values.refusals import CloseReason
from support.transcripts import Machine
from support.wire import values_text

CLASSES = values_text.known(messages, inventory, refusals, keys)
_CONTROLS = messages.Control.__args__


def player(settings: dict[str, str]) -> Machine:
    """Make the machine that a transcript's settings describe."""
    if settings["role"] == "agent":
        return _Player(
            AgentSession(
                instance=settings.get("instance", "agent-1"),
                last_session=int(settings.get("last-session", "0")),
                last_term=int(settings.get("last-term", "0")),
                jitter=float(settings.get("jitter", "0.5")),
            )
        ).perform
    return _Player(ManagerSession(instance=settings.get("instance", "manager-1"))).perform


class _Player:
    def __init__(self, machine: AgentSession | ManagerSession) -> None:
        self.machine = machine
        self.now = 0.0

    def perform(self, line: str) -> list[str]:
        words = line.split(" ")
        if words[0].startswith("@"):
            self.now = float(words.pop(0)[1:])
        verb, rest = words[0], " ".join(words[1:])
        if isinstance(self.machine, AgentSession):
            special = _agent(self.machine, verb, rest, self.now)
        else:
            special = _manager(self.machine, verb, rest, self.now)
        outputs = special if special is not None else self._common(verb, rest)
        return [render(output) for output in outputs]

    def _common(self, verb: str, rest: str) -> list[wire.SessionOutput]:
        first, _, text = rest.partition(" ")
        machine, now = self.machine, self.now
        table: dict[str, Callable[[], list[wire.SessionOutput]]] = {
            "tick": lambda: machine.tick(now),
            "opened": lambda: machine.handle(wire.StreamOpened(stream_id=int(first)), now),
            "closed": lambda: machine.handle(wire.StreamClosed(stream_id=int(first), text=text), now),
            "frame": lambda: machine.handle(wire.FrameReceived(stream_id=int(first), frame=parse_frame(text)), now),
            "send": lambda: machine.send([values_text.parse(part, CLASSES) for part in rest.split(" : ")], now),
            "close": lambda: machine.close(CloseReason[first], text, now),
            "abort": lambda: machine.abort(CloseReason[first], text, now),
            "bad": lambda: machine.handle(
                wire.BadFrame(
                    stream_id=int(first), reason=CloseReason[text.split(" ")[0]], text=text.partition(" ")[2]
                ),
                now,
            ),
        }
        return table[verb]()


def _agent(machine: AgentSession, verb: str, rest: str, now: float) -> list[wire.SessionOutput] | None:
    words = rest.split(" ")
    if verb == "start":
        return machine.start(now)
    if verb == "facts":
        facts = _pairs(words)
        return machine.set_facts(
            credits_=int(facts.get("credits", "0")),
            api_reachable=facts.get("reachable", "yes") == "yes",
            replicas=int(facts.get("replicas", "1")),
            kinds=("Pod", "Job"),
            now=now,
        )
    if verb == "answer":
        listed = [word for word in words[1:] if word]
        return machine.answer_inventory(int(words[0]), [entry(text) for text in listed], now)
    if verb == "see-term":
        return machine.see_term(int(words[0]), now)
    return None


def _manager(machine: ManagerSession, verb: str, rest: str, now: float) -> list[wire.SessionOutput] | None:
    words = rest.split(" ")
    facts = _pairs(words)
    if verb == "lead":
        return machine.lead(int(words[0]), now)
    if verb == "step-down":
        return machine.step_down(rest, now)
    if verb == "welcome":
        resume = facts.get("resume", "yes") == "yes"
        return machine.welcome(int(words[0]), int(facts["session"]), "origin-1", now, resume_allowed=resume)
    if verb == "refuse":
        return machine.refuse(int(words[0]), CloseReason[words[1]], " ".join(words[2:]), now)
    if verb == "ask":
        return machine.ask_inventory(int(words[0]), now)
    if verb == "grant":
        seconds = float(facts["seconds"]) if "seconds" in facts else None
        sent_at = float(facts["sent"]) if "sent" in facts else None
        return machine.grant(now, seconds=seconds, sent_at=sent_at)
    return None


def _pairs(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words if "=" in word)


def entry(text: str) -> InventoryEntry:
    """Read 'u@1:RUNNING' as an inventory entry."""
    key, _, state = text.partition(":")
    return InventoryEntry(key=values_text.key(key), namespace="", name="", state=state, lifted=state == "RUNNING")


def parse_frame(text: str) -> Frame:
    """Read `session=5 term=1 sequence=1 acknowledged=0 : VALUE : VALUE`."""
    numbers, *parts = text.split(" : ")
    fields = {name: int(number) for name, number in _pairs(numbers.split(" ")).items()}
    parsed = [values_text.parse(part, CLASSES) for part in parts]
    return Frame(
        session=fields.get("session", 0),
        term=fields.get("term", 0),
        sequence=fields.get("sequence", 0),
        acknowledged=fields.get("acknowledged", 0),
        control=tuple(value for value in parsed if isinstance(value, _CONTROLS)),
        messages=tuple(value for value in parsed if not isinstance(value, _CONTROLS)),
    )


def render(output: wire.SessionOutput) -> str:
    """Write an output as a transcript line."""
    match output:
        case wire.OpenStream(stream_id=stream):
            return f"open stream {stream}"
        case wire.Transmit(stream_id=stream, frame=frame):
            return f"transmit {stream} {render_frame(frame)}"
        case wire.CloseStream(stream_id=stream, close=None):
            return f"close stream {stream}"
        case wire.CloseStream(stream_id=stream, close=messages.Close(reason=reason)):
            return f"close stream {stream} {reason.name}"
        case _:
            return "! " + values_text.render(output)


def render_frame(frame: Frame) -> str:
    """Write a frame as `parse_frame` reads it; the term is left out when it is 0 (agents)."""
    term = f"term={frame.term} " if frame.term else ""
    head = f"session={frame.session} {term}sequence={frame.sequence} acknowledged={frame.acknowledged}"
    return " : ".join([head, *(values_text.render(value) for value in (*frame.control, *frame.messages))])
