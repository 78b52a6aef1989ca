"""HD-185: a list whose agent says that it proves nothing by absence does not answer a recovery (HD-80, HD-125)."""

from __future__ import annotations

import pytest

from gatelift.core.state.recovery_values import RecoveryStage
from histories.test_doubts import find_node, force_delete, lose_node
from histories.test_late_states import close, forget_the_namespace
from histories.test_recovery import cordon, found, recovered, say, until_found
from support.sim.cluster import TEAM
from support.sim.history import History
from support.sim.restoring import Backup, backup, restore


def ran_since_the_backup(kind: str, *, beside: bool = False) -> tuple[History, Backup]:
    """Return a history in which `one` runs on a, and a backup of when it waited; `beside` another run there."""
    history = History(shown=False)
    if beside:
        cordon(history, "b")
        history.pod("other")
        assert history.until_runs("other") == "a"
    for name in ("a", "b"):
        cordon(history, name)
    (history.pod if kind == "Pod" else history.job)("one")
    history.passes(5.0)
    kept = backup(history)
    cordon(history, "a", on=False)
    assert history.until_runs("one", kind) == "a"
    history.passes(90.0)
    return history, kept


def goes_on(history: History, kept: Backup) -> None:
    """Restore, and let a person say to go on; b is free to take work."""
    restore(history, kept)
    say(history, until_found(history))
    cordon(history, "b", on=False)


def waits_for_a_list(history: History, kind: str) -> None:
    """Hold that nothing is placed before the list of a proves what runs there, and that people read so."""
    history.passes(200.0)
    assert history.runs("one", kind) == {"a"}
    shown = found(history)
    assert (shown.stage, shown.clusters["a"].heard, shown.clusters["a"].unproven) == (
        RecoveryStage.WAITING,
        False,
        True,
    )
    assert "waits until the list of a proves what runs there" in history.leader.machine.core.caution.halted


def removed_unseen() -> tuple[History, Backup]:
    """Return the same with `one` removed by force from a lost node, where it runs on, and an agent that saw neither."""
    history, kept = ran_since_the_backup("Pod")
    lose_node(history, "a")
    history.passes(5.0)
    force_delete(history, "a")
    history.kill_agent("a")
    history.passes(20.0)
    assert history.containers("one") == 1
    return history, kept


def test_hd_185_while_not_all_nodes_were_heard_of_a_recovery_waits_for_another_list() -> None:
    """HD-185: the pod is in no list, and its container runs; the next leader waits as well."""
    history, kept = removed_unseen()
    goes_on(history, kept)
    waits_for_a_list(history, "Pod")
    history.kill_leader()
    history.until("another leads", history.leads)
    waits_for_a_list(history, "Pod")
    find_node(history, "a")
    history.until("dispatch goes on", lambda: recovered(history))
    assert history.until_runs("one") == "b"


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_hd_185_while_a_namespace_cannot_be_listed_a_recovery_waits_for_another_list(kind: str) -> None:
    """HD-185: the agent has forgotten it, and is told of it for another run: an answer of 403 is no answer."""
    history, kept = ran_since_the_backup(kind, beside=True)
    history.kill_agent("a", again=False)
    forget_the_namespace(history, "a")
    close(history, "a")
    history.world.start_agent("a")
    agent = history.agent("a")
    watch, asked = agent._watch_namespaces, list[tuple[str, ...]]()

    def refused(namespaces: tuple[str, ...]) -> None:
        asked.append(namespaces)
        watch(tuple(name for name in namespaces if name != TEAM))

    agent._watch_namespaces = refused  # type: ignore[method-assign]
    goes_on(history, kept)
    waits_for_a_list(history, kind)
    assert TEAM in asked[-1]
    agent._watch_namespaces = watch  # type: ignore[method-assign]
    watch(asked[-1])
    history.until("dispatch goes on", lambda: recovered(history))
    history.passes(100.0)
    assert history.runs("one", kind) == {"a"}
