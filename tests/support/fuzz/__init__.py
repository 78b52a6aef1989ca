"""Random events for both cores, and what must hold after each of them."""
