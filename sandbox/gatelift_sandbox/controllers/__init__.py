"""Stand-ins for what runs beside a real API server: scheduler, Job controller, garbage collector, namespaces.

Each controller decides only (`decide`: store in, actions out) and is told of each write; `loop` performs the actions,
through the admission of the embedded API server, or straight on the store in a simulation.
"""
