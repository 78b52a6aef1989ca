"""The agent of one worker cluster: dials the manager, holds room, applies pods gated, lifts, reports, fences.

`core` decides (values in, values out), `runtime` loops, `adapters` touch the world, `app` joins them.
"""
