"""What stands in the management API about a Workload, and the attempt that follows from it: read and written here.

Owns the table of attempts' states, what is known of objects, epochs, and which write says what. Decides nothing.
"""
