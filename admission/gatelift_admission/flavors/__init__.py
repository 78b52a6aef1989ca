"""Which flavor each resource of each pod set would be charged to, and how well that fits.

Owns nothing: asks the tree, and the market that `rounds` gives it about preemption.
"""
