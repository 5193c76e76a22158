# The first of two roots of the training environment: what Google Cloud has of it. The second one, the configuration,
# is what Kubernetes has of it, and is applied once this one's cluster answers: docs/adr/0063.
#
#   terraform init -backend-config=bucket=BUCKET -backend-config=prefix=gke-tpu-training-environment/infrastructure
#   terraform apply -var=project_id=PROJECT -var=region=us-central2 -var=zone=us-central2-b ...
#
# ../README.md has the variables. It was never applied to a live project: it is formatted, evaluated as far as no provider
# is needed, and checked against the provider's schema by tests/infra/environments.
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
