"""One Workload as the engine keeps it: how its object is read, how it is ordered, which checks it needs.

Owns `Entry`, the record of one Workload, which the rooms above pass around.
"""
