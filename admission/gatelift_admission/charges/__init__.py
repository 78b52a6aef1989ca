"""Who is charged for what: totals by queue, holders in the order of preemption, debts and loans of former cohorts.

Owns the ledger; mirrors it into the tree. Decides nothing.
"""
