"""A single pod, an object of its own. Pure.

Owns what its Workload is (`kind`) and what the webhook refuses of it (`rules`); what is done with any pod is in
`any_pod`. Called through `registry`. What is read of pods, whoever made them, what the webhook sets on all of them
(`pod_review`), what of them may not change (`pod_fixed`) and their shape are in `shared`.
"""
