# What Google Cloud has of the Triton environment: network, cluster, GPUs, bucket, identities, mesh, images. What Kubernetes
# has of it, ../serving, is manifests, and is applied once this cluster answers.
#
#   terraform init -backend-config=bucket=BUCKET -backend-config=prefix=triton-on-gke/infrastructure
#   terraform apply -var=project_id=PROJECT -var=region=us-central1 -var=zone=us-central1-a ...
#
# ../README.md has the variables. It was never applied to a live project: it is formatted, planned with a stand-in for the
# provider, and checked against the provider's schema by tests/infra/environments.
#
# The provider's checksums: `terraform init` writes .terraform.lock.hcl. Keep it beside the state, as the build does, so
# that removal has the provider that made all this.

terraform {
  required_version = "~> 1.11.4"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "7.45.0"
    }
  }

  # The bucket and the prefix are passed to `terraform init`.
  backend "gcs" {}
}

# There is no provider of Kubernetes here: it would need the cluster's address before there is a cluster, and again when
# there is none any more.
provider "google" {
  project        = var.project_id
  region         = var.region
  default_labels = local.labels
}
