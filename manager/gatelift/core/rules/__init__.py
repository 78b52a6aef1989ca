"""What a Workload may do now, and what ends it: Kueue's rules, and our own about records, predecessors and home.

Readiness, execution time, deactivation, retention, priorities, checks, finalizers; answers, and writes about them.
"""
