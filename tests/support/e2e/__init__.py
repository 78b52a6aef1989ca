"""Real processes on real API servers: the installation that the scenarios of `tests/e2e` share, and what it says."""
