"""Benchmarks: each runnable alone, each printing its figures, its conditions, and one JSON object as its last line."""
