"""Decides: one machine with one door, `machine.Machine.handle(event, now) -> commands`. No I/O, no clock.

Rooms, from the door down; each imports only what stands below it (`.importlinter`, `scripts/rooms.py`):

* `machine` takes events, drives the passes, and lets commands out.
* `works` takes user's objects, Workloads and answers in (`works.taking`, `works.answers`), joins them, and decides
  upon each in turn (`works.reconcile`).
* `conclusions` is what follows from what clusters say: reports, inventories, whether the record is the newest.
* `dispatching` brings a reservation to a cluster, and to its end.
* `rules` say what a Workload may do now, and what ends it.
* `told` is what people are shown: events, mirrored status, ends.
* `state` is what is known in memory (`state.core.Core`).
* `clusters` hold the sessions, one link each, and write the WorkerClusters.
* `records` are what stands in the management API about a Workload, the attempt that follows from it, and the work that
  joins it with users' objects (`records.work`).
* `api` has events, commands, the agenda and the writes in flight; `texts` what people read.
"""
