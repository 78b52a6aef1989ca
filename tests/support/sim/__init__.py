"""Simulated installations: both real cores on simulated clusters, time and faults, and what judges them from outside.

`history` is for scripted ones, `many` lives drawn ones.
"""
