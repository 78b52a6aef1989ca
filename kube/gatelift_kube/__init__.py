"""The Kubernetes API as both ends use it.

Belongs here: the client, watch cache, work queue, leader election, event recorder, typed objects, and the values
that describe reads and writes (`writes`). Must not be here: anything that knows what a workload, a queue or a
placement means. `objects`, `resources`, `writes` and `conditions` are pure; the rest does I/O.
"""
