"""Infrastructure: Terraform, Kubernetes manifests, per-cluster settings, and the local stack."""
