"""Decides: one machine with one door, `machine.Machine.handle(event, now) -> commands`. No I/O, no clock.

The nouns: a *placement* is one attempt of one workload here (`placement.placements`, with its state table); its
*objects* are what stands for it in the cluster, each tracked by name and UID; the *session* is the talk in which
the manager offers, commits, confirms and stops; the *world* is all that is known, and rebuilt at each start.

The flow: an event changes the world and names placements to look at; each is looked at once, from its state alone
(`advancing.progress`); what is wanted is collected in the world and goes out by the door. Nothing calls back.

Rooms, from the door down; each imports only what stands below it (`.importlinter`, `scripts/rooms.py`):

* `machine` takes events, passes the gates of a start, looks at placements, and lets commands out.
* `session` is the conversation with the manager: the link, its orders, the inventory.
* `advancing` brings placements forward, and takes the answers to their writes; `beginning` makes them after a start.
* `leaving` stops them, proves them still, says their end, cleans up or keeps what is left.
* `changes` are what others change of what was made; `reporting` is what the manager is told.
* `seeing` is what follows from watches: what came and went, what may run unseen, whose a pod is.
* `refusing` is what this worker does not take, and what may not start now (R1, R8).
* `state` is what is known (`state.world.World`), who leads, and what failed and rests.
* `admission` decides whether there is room, by a backend; `memory` outlives the process; `watched` is what there is in
  the cluster.
* `placement` is the state table; `values` are events, commands, settings.
"""
