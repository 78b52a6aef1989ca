"""Ports that anybody may reach: bounded connections, health, figures and who may read them. Touches the network."""
