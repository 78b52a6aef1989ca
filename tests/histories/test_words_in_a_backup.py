"""HD-183: a revocation in a backup says nothing of a cluster that was taken in again since, in what the record lost."""

from __future__ import annotations

from gatelift_kube.values.resources import POD, WORKER_CLUSTER
from histories.test_recovery import cordon, recovered, restored_before_one_ran, say, until_found
from histories.test_restored_again import waits_for
from support.sim.history import History
from support.sim.restoring import backup, restore
from support.sim.switchboard import KEY_DIGEST


def revoke(history: History, name: str) -> None:
    history.edit("home", WORKER_CLUSTER, name, {"spec": {"revoked": True}})


def take_in_again(history: History, name: str) -> None:
    """Let a person remove a revoked cluster, add it again and approve the key of its agent: there is no other way."""
    history.delete("home", WORKER_CLUSTER, name)
    history.passes(2.0)
    history.home.create(WORKER_CLUSTER, {"metadata": {"name": name}, "spec": {}})
    history.edit("home", WORKER_CLUSTER, name, {"status": {"keyDigest": KEY_DIGEST}}, "status")
    history.until_connected(name)


def revoked_in_the_backup() -> History:
    """Return a restored history: a was revoked in the backup and `one` waited; it ran on a since, which is cut off."""
    history = History(shown=False)
    for name in ("a", "b"):
        cordon(history, name)
    history.pod("one")
    history.passes(5.0)
    revoke(history, "a")
    history.passes(90.0)
    kept = backup(history)
    take_in_again(history, "a")
    cordon(history, "a", on=False)
    assert history.until_runs("one") == "a"
    history.passes(90.0)
    history.cut("a")
    restore(history, kept)
    say(history, until_found(history))
    cordon(history, "b", on=False)
    return history


def test_hd_183_a_cluster_that_was_revoked_in_the_backup_is_awaited_like_any_other() -> None:
    """HD-183: also by the next leader; *fenced*, said of the restore, is the word that ends it."""
    history = revoked_in_the_backup()
    waits_for(history, "a")
    history.kill_leader()
    history.until("another leads", history.leads)
    waits_for(history, "a")
    assert history.lost("a"), "so that the word can be said"
    history.delete("a", POD, "one")  # its machines are switched off
    history.passes(60.0)
    history.say_fenced("a")
    history.until("dispatch goes on", lambda: recovered(history))
    assert history.until_runs("one") == "b"


def test_hd_183_taken_in_again_it_answers_itself() -> None:
    history = revoked_in_the_backup()
    waits_for(history, "a")
    history.mend("a")
    take_in_again(history, "a")
    history.until("dispatch goes on", lambda: recovered(history))
    history.passes(100.0)
    assert history.runs("one") == {"a"}


def test_hd_183_revoking_a_cluster_does_not_end_the_wait_for_it() -> None:
    """HD-183: what is revoked runs on; whether the revocation came before the restore was found nobody can tell."""
    history = restored_before_one_ran(for_good=False)
    say(history, until_found(history))
    cordon(history, "b", on=False)
    waits_for(history, "a")
    revoke(history, "a")
    waits_for(history, "a")
