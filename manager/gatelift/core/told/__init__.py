"""What people are shown of a Workload: events, the mirrored status of their object, how it ended, what troubles its pods.

Writes only what informs: no quota and no run depends on it.
"""
