"""What this worker does not take, by policy and by the rules of a start (R1, R8), and what it takes off."""
