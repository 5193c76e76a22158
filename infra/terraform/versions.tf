# The provisioner's cloud side: functions, messages, records, identities.
# It was never applied to a live project. It is formatted, evaluated as far as no provider is needed, and checked
# against the code by tests/infra; the arguments of resources follow the provider's documentation. The first
# `terraform init` writes .terraform.lock.hcl: keep it with the sources.

terraform {
  required_version = "~> 1.11.4"

  required_providers {
    archive = {
      source  = "hashicorp/archive"
      version = "2.7.1"
    }
    google = {
      source  = "hashicorp/google"
      version = "7.45.0"
    }
  }

  # The bucket and the prefix are passed to `terraform init`: see cloudbuild.yaml.
  backend "gcs" {}
}

provider "google" {
  project = var.project
  region  = var.region
}
