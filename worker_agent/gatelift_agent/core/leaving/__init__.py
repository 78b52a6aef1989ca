"""How a placement ends: stopped, proved still, reported, cleaned up or kept to be looked at."""
