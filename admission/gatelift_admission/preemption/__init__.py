"""Who has to leave so that another one fits: candidates, the classical search, and the questions asked of it."""
