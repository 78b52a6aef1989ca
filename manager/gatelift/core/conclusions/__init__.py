"""What follows from what clusters say: reports, inventories, and whether the record is the newest (`recovery`).

A cluster's word ends, charges or holds a Workload here, and nowhere else.
"""
