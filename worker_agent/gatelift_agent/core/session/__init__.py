"""The conversation with the manager: the link, the orders that come in (offers, commits, stops), the inventory."""
