# The second of two roots of the training environment: what Kubernetes has of it. The first one, the infrastructure, has
# what Google Cloud has of it, and is applied before: docs/adr/0063. Why charts, and where quotas come from: docs/adr/0066.
#
#   terraform init -backend-config=bucket=BUCKET -backend-config=prefix=gke-tpu-training-environment/configuration
#   terraform apply -var=project_id=PROJECT -var=state_bucket=BUCKET
#
# ../README.md has the variables. It was never applied to a live project: tests/infra/environments/configuration lets
# Terraform plan it, and a Kubernetes API server judge what it makes.

terraform {
  required_version = "~> 1.11.4"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "7.45.0"
    }
    helm = {
      source  = "hashicorp/helm"
      version = "3.3.0"
    }
    kubernetes = {
      source  = "hashicorp/kubernetes"
      version = "3.4.0"
    }
  }

  # The bucket and the prefix are passed to `terraform init`.
  backend "gcs" {}
}

# What the infrastructure tells, so that nobody types it again.
data "terraform_remote_state" "infrastructure" {
  backend = "gcs"

  config = {
    bucket = var.state_bucket
    prefix = var.state_prefix
  }
}

# A token of whoever runs Terraform. It is asked for anew by each plan and each apply, and is in no plan and no state. So an
# apply never has a plan's old token, and needs no gke-gcloud-auth-plugin, which Terraform's image lacks.
ephemeral "google_client_config" "caller" {}

provider "google" {
  project = var.project_id
}

# The certificate of the control plane's DNS name is one that everybody trusts.
provider "kubernetes" {
  host  = local.endpoint
  token = ephemeral.google_client_config.caller.access_token
}

provider "helm" {
  kubernetes = {
    host  = local.endpoint
    token = ephemeral.google_client_config.caller.access_token
  }
}
