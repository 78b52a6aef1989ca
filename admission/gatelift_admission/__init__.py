"""The pure admission engine: amounts, quota tree, flavors, ordering, cycle. Start reading at `cycle`."""
