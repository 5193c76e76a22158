# Each function is one entry point of functions/main.py. cloudbuild.yaml stages the source: main.py, tpu_slices/ and
# requirements.txt side by side.

locals {
  # The one place that has the version; no label of Google Cloud may have a dot.
  version       = one(regex("(?m)^version = \"([^\"]+)\"$", file("${path.module}/../../pyproject.toml")))
  version_label = replace(lower(local.version), "/[^a-z0-9_-]/", "-")

  functions = {
    receive = {
      memory        = "512Mi"
      max_instances = 20
      publishes_to  = ["reconcile-requests", "slice-updates"] # the latter to ask about JobSets
      gke           = []
    }
    reconcile = {
      memory        = "512Mi"
      max_instances = 20
      publishes_to  = ["reconcile-requests", "slice-updates"]
      # IAM has no permissions on node pools: creating and deleting one is an update of the cluster, and so is cancelling
      # an operation. A pool of tpu7x names a workload policy; whether GKE requires both resourcePolicies permissions was
      # never tested.
      gke = [
        "compute.resourcePolicies.get",
        "compute.resourcePolicies.use",
        "container.clusters.get",
        "container.clusters.update",
        "container.operations.get",
        "container.operations.list",
      ]
    }
    sweep = {
      memory        = "512Mi"
      max_instances = 1
      publishes_to  = ["reconcile-requests", "slice-updates"]
      # It only reads and requests reconciliation: reconcile makes all changes.
      gke = [
        "container.clusters.get",
        "container.operations.get",
        "container.operations.list",
      ]
    }
  }
}

data "archive_file" "functions" {
  type             = "zip"
  source_dir       = "${path.module}/../../build/functions"
  output_path      = "${path.module}/../../build/functions.zip"
  output_file_mode = "0644"
}

resource "google_storage_bucket" "functions" {
  name                        = "${var.project}-tpu-slice-functions"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
}

# Named by its content: a function is redeployed only if its source changed, or its version.
resource "google_storage_bucket_object" "functions" {
  name   = "functions-${data.archive_file.functions.output_sha256}.zip"
  bucket = google_storage_bucket.functions.name
  source = data.archive_file.functions.output_path
}

resource "google_cloudfunctions2_function" "function" {
  for_each = local.functions

  name     = "tpu-slice-${each.key}"
  location = var.region
  labels   = { version = local.version_label }

  build_config {
    runtime         = "python311"
    entry_point     = each.key
    service_account = google_service_account.build.id

    source {
      storage_source {
        bucket = google_storage_bucket.functions.name
        object = google_storage_bucket_object.functions.name
      }
    }
  }

  # No event trigger: the subscriptions of messaging.tf push to it, and the decorator in main.py makes it a CloudEvent
  # function.
  service_config {
    service_account_email            = google_service_account.function[each.key].email
    ingress_settings                 = "ALLOW_INTERNAL_ONLY"
    timeout_seconds                  = local.function_timeouts[each.key]
    available_cpu                    = "1"
    available_memory                 = each.value.memory
    max_instance_count               = each.value.max_instances
    max_instance_request_concurrency = 4 # functions-framework serves 4 threads on one CPU

    environment_variables = {
      GOOGLE_CLOUD_PROJECT = var.project
      VERSION              = local.version
    }
  }

  depends_on = [
    google_project_iam_member.build,
    google_project_service.api,
  ]
}
