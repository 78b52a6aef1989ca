"""What the engine counts with and decides in: amounts, what waits, what was granted, decisions. Arithmetic only.

Imports nothing of the engine; every room may import it.
"""
