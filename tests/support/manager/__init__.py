"""The manager's core, its webhooks and verbs on fakes: objects to feed, a management API, agents that a test plays."""
