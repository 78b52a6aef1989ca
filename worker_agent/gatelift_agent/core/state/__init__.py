"""All that the machine knows, in one place: who leads, which namespaces go, what failed and rests, what is asked."""
