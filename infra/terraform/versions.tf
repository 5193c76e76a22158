# The provisioner's cloud side: functions, messages, records, identities. It can be applied to an empty project, again
# to change it, and beside another provisioner's; `-var=destroy=yes` (variables.tf) takes it away.
# It was never applied to a live project. It is formatted, evaluated as far as no provider is needed, and checked
# against the code and against the providers' schemas by tests/infra.
#
# Planning changes nothing but build/functions.zip: it may be done, and looked at, apart from applying. A plan is applied
# where it was made, since it names that file.
#
# The providers' checksums: `terraform init` writes .terraform.lock.hcl. The build keeps it beside the state, as
# gs://STATE_BUCKET/tpu-slice-provisioner/terraform.lock.hcl: it copies it here before `init`, and back after the first
# one. So each build has the providers of the first, or fails. Who changes a version here deletes that object.

terraform {
  required_version = "~> 1.11.4"

  required_providers {
    archive = {
      source  = "hashicorp/archive"
      version = "2.8.1"
    }
    google = {
      source  = "hashicorp/google"
      version = "7.45.0"
    }
    # Only for google_project_service_identity, which the google provider lacks.
    google-beta = {
      source  = "hashicorp/google-beta"
      version = "7.45.0"
    }
    time = {
      source  = "hashicorp/time"
      version = "0.14.2"
    }
  }

  # The bucket and the prefix are passed to `terraform init`: see cloudbuild.yaml.
  backend "gcs" {}
}

provider "google" {
  project        = var.project
  region         = var.region
  default_labels = local.labels
}

provider "google-beta" {
  project = var.project
  region  = var.region
}
