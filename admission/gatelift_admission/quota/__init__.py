"""The quota tree: cohorts, ClusterQueues, what is nominal, used, borrowed and lent, and the share that follows.

Owns the tree and its undo log. Knows no Workload: `charges` says for whom something is used, `rounds` asks what fits.
"""
