"""Raises in each function that is about one object: nobody else may notice, and its own end may only be late."""
