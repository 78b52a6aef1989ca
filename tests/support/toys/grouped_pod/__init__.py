"""A kind of the resource Pod whose objects are n to one Workload: the pods of a group."""
