"""A small Kubernetes API server in one process, with a Job controller and a scheduler: 501 for what is not covered."""
