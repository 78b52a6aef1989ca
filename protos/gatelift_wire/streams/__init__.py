"""Where frames and certificates meet a process: the writer of a stream, keys and names in certificates."""
