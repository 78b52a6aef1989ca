"""The Kubernetes API as both ends use it.

Belongs here: the client, watch cache, work queue, leader election, event recorder, typed objects, and the values
that describe reads and writes (`writes`). Must not be here: anything that knows what a workload, a queue or a
placement means.

The way of data: `transport` (HTTP) and `client` (verbs) at the bottom; `reflector` turns lists and watches into
`writes.ObjectSeen/ObjectGone`, `executor` carries out `writes.Create/Patch/Delete` and answers with
`writes.WriteDone/WriteFailed`; `leader` and `events` stand beside. `clock`, `client`, `config`, `events`, `executor`,
`leader`, `reflector`, `tasks` and `transport` touch the world; all other modules are pure (`.importlinter`).
"""
