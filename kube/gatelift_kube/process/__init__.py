"""What a process has of its machine: clocks, tasks, descriptors, memory, the event loop, its configuration file."""
