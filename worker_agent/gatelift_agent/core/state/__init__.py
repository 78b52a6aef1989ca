"""All that the machine knows, in one place, with who leads, which namespaces go, and what failed and rests."""
