"""Bytes of others become typed objects, or are said to be unreadable. Pure; over `objects` and `deciding`."""
