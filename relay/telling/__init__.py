"""What is told of workloads, when, and what was told: facts by difference, and what flaps at a pace."""
