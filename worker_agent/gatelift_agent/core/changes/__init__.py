"""What others change of what was made: it is put back once, or ends the run; what a pod may ask for."""
