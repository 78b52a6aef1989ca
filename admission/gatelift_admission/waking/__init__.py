"""Who waits for what, and when they are looked at again after quota came free.

Owns the index of what sleepers lack, the turns in which they are woken, and what is kept for whom. Wakes nobody itself:
`state` does.
"""
