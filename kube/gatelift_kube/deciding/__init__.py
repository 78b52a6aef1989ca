"""What both ends decide about an API server: writes and their errors, retries, budgets, caches, who leads. Pure."""
