"""What the manager is told of a placement: status, counts, what keeps its pods from running, its end."""
