"""HD-304: offers and commits name what the pods ask for and quota does not count."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_admission.values.model import EngineSettings
from gatelift_wire.encoding.codec import decode_from_manager, encode_from_manager
from gatelift_wire.values.messages import Commit, Frame, Offer, PodSetRequest
from support.manager.builders import a_pod, a_setting
from support.manager.world import World, a_world

EXCLUDED = EngineSettings(excluded_prefixes=("example.com/",))


def _world(requests: dict[str, str], admission: EngineSettings = EXCLUDED) -> World:
    """Return a world in which a pod that asks for so much was placed."""
    world = a_world(a_setting(clusters=("a",)), clusters=("a",), admission=admission)
    pod = a_pod("one").document()
    pod["spec"]["containers"][0]["resources"]["requests"].update(requests)
    world.api.apply(pod)
    world.advance(3.0)
    return world


def _said(world: World, kind: Any) -> PodSetRequest:
    ((_, message),) = world.messages(kind)
    (one,) = message.pod_sets
    assert isinstance(one, PodSetRequest)
    return one


@pytest.mark.parametrize("kind", [Offer, Commit])
@pytest.mark.parametrize(
    "admission", [EXCLUDED, EngineSettings(ignore_undeclared=True)], ids=["excluded", "undeclared"]
)
def test_hd_304_what_settings_leave_out_is_said_beside_what_is_granted(admission: EngineSettings, kind: Any) -> None:
    said = _said(_world({"example.com/license": "3"}, admission), kind)
    assert said.requests == (("cpu", 1000),)
    assert said.uncounted == (("example.com/license", 3),)


def test_hd_304_where_all_is_counted_nothing_is_said() -> None:
    assert _said(_world({}, EngineSettings()), Offer).uncounted == ()
    assert _said(_world({}), Offer).uncounted == ()


def test_hd_304_a_name_that_the_wire_does_not_take_ends_no_session() -> None:
    """A tenant writes it: it is left out."""
    world = _world({f"example.com/{'x' * 400}": "1", "example.com/license": "2"})
    assert _said(world, Offer).uncounted == (("example.com/license", 2),)


def test_hd_304_it_goes_over_the_wire_and_nothing_does_where_there_is_none() -> None:
    world = _world({"example.com/license": "3"})
    ((_, offer),) = world.messages(Offer)
    frame = Frame(session=1, term=1, sequence=1, messages=(offer,))
    assert decode_from_manager(encode_from_manager(frame)).messages == (offer,)
