"""What crosses the wire between manager and agent, and the session both ends run.

Belongs here: the schema, the codec, the values of messages, the session machine, keys, refusals, identity.
Must not be here: anything that knows what either end does with a message.
"""
