"""The scheduling cycle: heads, nominations, order, preemptions, reservations. Begin reading at `cycle`.

Owns the round under way. Called by `engine` alone; changes `state` by its verbs.
"""
