"""Generated code of agent.proto. Only the codec and the gRPC adapters import it."""
