"""What travels between manager and agent: messages, keys, refusals, and what each of them may hold. Pure."""
