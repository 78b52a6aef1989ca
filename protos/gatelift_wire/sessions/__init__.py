"""The machine of one numbered conversation, which both ends run: leases, outbox, packing, cutting. Pure."""
