"""A kind of a resource of its own, with two pod sets and two pod specs: a leader and its workers."""
