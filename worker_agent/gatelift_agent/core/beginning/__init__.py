"""How a process begins: placements made of what is there, and what of them can only be asked for."""
