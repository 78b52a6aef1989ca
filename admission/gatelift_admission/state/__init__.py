"""All that the engine knows, and what follows when a charge changes or something came free. No decision is taken here.

Owns what is known of objects and the quota tree as it stands; the rooms below own their parts of it.
"""
