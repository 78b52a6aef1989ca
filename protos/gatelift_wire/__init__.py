"""What crosses the wire between manager and agent, and the session both ends run.

Must not be here: anything that knows what either end does with a message.

`values` says what travels and what it may hold; `sessions` is the machine of one conversation; both are pure.
`encoding` turns values into bytes of the schema in `v1` and back; `streams` is what meets a process. Each knows only
those before it, by contract of `.importlinter`.
"""
