"""A small checked model of sizes (SL-82): every history of a bounded space, breadth first. No code of the product."""
