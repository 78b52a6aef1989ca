"""What is seen of a cluster is kept between two changes of it: whoever asks is told what is true then."""

from __future__ import annotations

import pytest

from gatelift.core.clusters.link_values import ClusterView
from gatelift.core.clusters.links import Links
from support.sim.world import SimWorld

SEEDS = 6


def test_what_is_kept_of_a_cluster_is_what_would_be_found_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever breaks: each view that anybody asks for is compared with one that is made for him."""
    kept, asked = Links.state, 0

    def compared(links: Links, cluster: str) -> ClusterView | None:
        nonlocal asked
        view = kept(links, cluster)
        asked += view is not None
        links._views = {}
        assert kept(links, cluster) == view
        return view

    monkeypatch.setattr(Links, "state", compared)
    for seed in range(SEEDS):
        SimWorld(seed).run()
    assert asked > 1000 * SEEDS
