"""A single pod, an object of its own. Pure.

Owns what is done with it from its Workload to its end: `kind` answers, with what it is charged for (`charged`) and what
the webhook refuses of it (`rules`). Called through `registry`. What is read of pods, whoever made them, what the
webhook sets on all of them (`pod_review`), what of them may not change (`pod_fixed`) and their shape are in `shared`.
"""
