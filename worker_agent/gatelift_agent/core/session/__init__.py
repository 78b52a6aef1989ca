"""The conversation with the manager: the link, the orders that come in, the inventory that answers."""
