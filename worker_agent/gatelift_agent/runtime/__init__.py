"""Loops: feeds events to the machine, hands its commands to adapters, supervises tasks. No policy."""
