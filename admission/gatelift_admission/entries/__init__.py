"""One Workload as the engine keeps it: how its object is read, its place in an order, where it stands, its checks.

Owns `Entry`, the record of one Workload, which the rooms above pass around, and the table of where one may stand.
"""
