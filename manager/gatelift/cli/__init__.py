"""Talks to people: parses, calls, renders, nothing more. One file a verb."""
