"""Messages as bytes of the schema in `v1`, and large frames cut before they are read. Pure, over protobuf."""
