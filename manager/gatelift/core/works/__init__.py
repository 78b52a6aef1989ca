"""User's objects and their Workloads: taken in (`intake`), joined (`owners`), and decided upon (`reconcile`).

The highest room: begin reading at `reconcile`.
"""
