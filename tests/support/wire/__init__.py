"""Sessions and streams: both ends of one, scripted; values of every message."""
