"""What follows from what watches show: what came and went, what may run unseen, whose a pod is."""
