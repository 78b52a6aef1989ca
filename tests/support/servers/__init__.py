"""API servers for tests: a fake one that fails as told, rigs of the embedded one, what contracts ask of both."""
