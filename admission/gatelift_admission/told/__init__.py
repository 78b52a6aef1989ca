"""What people read: why a Workload waits, what would happen to it, statuses of queues and cohorts.

Looks at everything and changes nothing but what has been said. `answers` is all that can be asked.
"""
