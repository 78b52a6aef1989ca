"""The training whose leader and workers are resized each by itself while it runs: a kind of two pod sets (KEP-77)."""
