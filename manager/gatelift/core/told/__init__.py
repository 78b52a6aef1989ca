"""What people are shown of a Workload: events, the mirrored status of their object, its end, the trouble of its pods.

Writes only what informs: no quota and no run depends on it.
"""
