"""Generated code of agent.proto. The encoding and the adapters of enrolment know it."""
