"""From a reservation to its end: offers, the winner, the placement, what it is told, how it ends.

Owns the rounds of offers and the moves of an attempt. `endings` gives quota back.
"""
