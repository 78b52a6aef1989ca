"""What the rules of the repository are held with."""
