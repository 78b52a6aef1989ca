"""The placement at the agent: its state table, what is known of each of its objects, how long its end may take."""
