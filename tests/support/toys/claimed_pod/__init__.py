"""A kind of the resource Pod beside the single pod: every pod that has a label is its."""
