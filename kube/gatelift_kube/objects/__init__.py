"""Typed objects: msgspec structs that name only the fields in use. Pure.

They are read-only views for deciding. Writes are patches of named fields, so fields that are not listed here survive.
"""
