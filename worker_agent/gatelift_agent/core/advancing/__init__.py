"""Brings placements forward: holds, creates, asks for room, lets go; what the answers to its writes mean."""
