"""What passes the door, and what is asked of the management API: events, commands, writes in flight, times to look.

Owns the agenda, the writes that are under way and the pauses after refused ones. Knows no Workload and no cluster.
"""
