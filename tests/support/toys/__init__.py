"""Kinds of the tests' own: what a new kind is made of, and that nothing else of the product has to know of it."""
