"""What the system runs on: Terraform, manifests, settings per cluster, and the local stack."""
