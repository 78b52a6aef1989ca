"""A single pod, an object of its own. Pure.

Owns what is done with it from its Workload to its end: `kind` answers, with what it is charged for (`charged`), what of
it may not change (`fixed`), and what the webhook sets and refuses (`rules`). Called through `registry`. What is read of
pods, whoever made them, and their shape as Kueue writes it, is in `shared`.
"""
