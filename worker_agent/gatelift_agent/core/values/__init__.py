"""Values: events that come in, commands that go out, settings, and small things that know nothing of placements."""
