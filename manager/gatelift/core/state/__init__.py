"""All that the manager knows in memory: `core.Core` and the parts of it; who waits, who is doubted, who came before.

Each part's fields are its own; the rooms above use its methods.
"""
