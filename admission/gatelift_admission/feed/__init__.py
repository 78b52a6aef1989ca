"""Objects come in: Workloads, queues, cohorts, namespaces; and the rules of what may be written on them.

Turns what an object says into a place, a charge and a wish in `state`. Called by `engine`; decides nothing.
"""
