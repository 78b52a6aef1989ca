"""One API server as processes reach it: requests, watches, writes, events, the Lease. Touches the network."""
