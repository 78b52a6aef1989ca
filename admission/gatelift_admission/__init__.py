"""The pure admission engine: objects in, decisions and texts out. Start reading at `rounds.cycle`.

Rooms, from the door down; each imports only what stands below it (`.importlinter`, `scripts/rooms.py`):

* `engine` is the door: `feed` it objects, let it decide (`rounds`), read what became of that (`told`).
* `state` is all that the engine knows, and what follows when a part of it changes: no decision is taken there.
* `queues` hold what waits, `waking` says when it is looked at again, `preemption` who would have to leave for it.
* `charges` say who is charged for what, `entries` what one Workload is, `flavors` what it would be charged to.
* `quota` is the tree, `demand` what pods ask for, `values` the amounts and records that all of them speak in.

Data go down as questions and come back as values: no room calls one that stands above it.
"""
