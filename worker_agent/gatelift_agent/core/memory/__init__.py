"""What outlives a look or the process: used epochs, and the agent's own ConfigMaps with what they say."""
