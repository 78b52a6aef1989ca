"""The agent's core on a stage: a worker's API, its controllers and kubelets, and a manager that a test plays."""
