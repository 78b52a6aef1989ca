"""A Workload without an owner. Pure.

Owns that there is nothing to do: it is admitted, and nothing of it is made anywhere. Called through `registry`.
"""
