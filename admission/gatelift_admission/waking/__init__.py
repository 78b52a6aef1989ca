"""When classes of pending workloads are evaluated again after quota was released.

Owns the index of the quota that each class lacks, the turns in which classes are woken, and the quota that is kept back
meanwhile. Changes no queue itself: `state` does.
"""
