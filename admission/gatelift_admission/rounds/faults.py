"""A workload that raises an exception as it is looked at is set aside, and everybody else has his turn. Pure.

A mistake of ours, or an object that nobody thought of, must not keep all queues from being decided on. What it holds
stays charged. It is looked at again when its object changes, or when the caller says so (`Engine.look_again`).
Neighbours: `engine` and `cycle` catch at the boundary of one workload, `places` leaves alone what is set aside.
"""

from __future__ import annotations

from gatelift_admission import texts
from gatelift_admission.demand.grants import NOTHING
from gatelift_admission.entries.entry import Entry, Phase
from gatelift_admission.feed import places
from gatelift_admission.state import State
from gatelift_admission.values.model import Fault


def set_aside(state: State, entry: Entry, error: Exception) -> None:
    """Keep an entry out of all queues; what a search had changed in the tree is made anew from the charges."""
    state.faults.append(Fault(uid=entry.uid, key=entry.key, error=error))
    keep_out(state, entry, error)


def keep_out(state: State, entry: Entry, error: Exception) -> None:
    """Do the same where the caller knows of it."""
    entry.faulty = True
    state.restructure()
    places.unqueue(state, entry)
    state.tell(entry, (texts.MISCONFIGURED, texts.faulty(type(error).__name__)))


def take_back(state: State, entry: Entry) -> None:
    """Take back a reservation of which nobody is told, since deciding on it came to no end."""
    if entry.phase is Phase.ASSUMED:
        entry.phase, entry.grant = Phase.PENDING, NOTHING
        state.settle(entry)


def look_again(state: State, entry: Entry) -> None:
    """Let an entry that was set aside have its turn again."""
    if entry.faulty:
        entry.faulty = False
        state.review[entry.uid] = entry
