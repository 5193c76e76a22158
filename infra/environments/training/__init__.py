"""The training environment: GKE with static TPU slices, beside those that the provisioner buys."""
