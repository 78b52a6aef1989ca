"""What watches show of the cluster: objects of ours and whose they are, and its nodes."""
