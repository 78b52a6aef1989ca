"""The Kubernetes API as both ends use it.

Belongs here: the client, watches, writes, leader election, events, typed objects, and what a process needs around them.
Must not be here: anything that knows what a workload, a queue or a placement means.

Four rooms decide and are pure: `values`, `objects` (typed), `deciding` (what is asked of an API server, and what its
answers mean), `decoding`. Three touch the world: `process`, `api`, `serving`. Each knows only those before it, by
contract of `.importlinter`. The way of data: `api.reflector` turns lists and watches into `ObjectSeen` and
`ObjectGone` of `deciding.writes`; `api.executor` carries out its `Create`, `Patch` and `Delete`, and answers with
`WriteDone` or `WriteFailed`.
"""
