"""What an agent keeps of itself, as one value: read from foreign text, and merged with what is found there."""

from __future__ import annotations

import msgspec

from gatelift_kube.values.unreadable import UNREADABLE


class KeptState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The manager's origin, the last session and term, namespaces with work, and the leader's sealed counter (hex)."""

    origin: str = ""
    session: int = 0
    term: int = 0
    namespaces: tuple[str, ...] = ()
    counter: int = 0
    seal: str = ""


_DECODER = msgspec.json.Decoder(KeptState)


def decode(text: str) -> KeptState | None:
    """Return the state that stands there, None when nobody can read it."""
    try:
        return _DECODER.decode(text)
    except UNREADABLE:
        return None


def encode(state: KeptState) -> str:
    """Return the state as it is written."""
    return msgspec.json.encode(state).decode()


def merge(own: KeptState, found: KeptState) -> KeptState:
    """Return what holds when `found` was written by somebody else meanwhile.

    No namespace is lost; of the same manager the later session and the later counter count, of another one our own.
    """
    more = tuple(name for name in found.namespaces if name not in own.namespaces)
    state = msgspec.structs.replace(own, namespaces=(*own.namespaces, *more))
    if own.origin and own.origin != found.origin:
        return state
    later = max(own, found, key=lambda each: each.session)
    counted = max(own, found, key=lambda each: each.counter)
    return msgspec.structs.replace(
        state,
        origin=found.origin,
        session=later.session,
        term=later.term,
        counter=counted.counter,
        seal=counted.seal,
    )
