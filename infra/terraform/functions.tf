# Each function is one entry point of functions/main.py. cloudbuild.yaml stages the source: main.py, tpu_slices/ and
# requirements.txt side by side.

locals {
  # The one place that has the version; no label of Google Cloud may have a dot.
  version       = one(regex("(?m)^version = \"([^\"]+)\"$", file("${path.module}/../../pyproject.toml")))
  version_label = replace(lower(local.version), "/[^a-z0-9_-]/", "-")

  # Of everything that can have labels.
  labels = merge(
    { app = "tpu-slice-provisioner", version = local.version_label },
    var.commit == "" ? {} : { commit = var.commit },
  )

  # `gke` is what a function may do in each project with clusters of GKE, and what in those clusters that have a file.
  # `compute` is what it may do in each project with slices of self-managed clusters, and what with `hosts`, whose names
  # begin as those of slices do. `records`: whether it reads and writes the records.
  functions = {
    receive = {
      memory        = "512Mi"
      max_instances = var.max_instances
      records       = true
      publishes_to  = ["requests-{cluster}", "updates-{cluster}", "questions-{cluster}"]
      gke           = {}
      compute       = {}
    }
    reconcile = {
      memory        = "512Mi"
      max_instances = var.max_instances
      records       = true
      publishes_to  = ["requests-{cluster}", "updates-{cluster}", "questions-{cluster}"]
      gke = {
        project = [
          # What a reservation has left is read before anything is asked for in it.
          "compute.futureReservations.list",
          "compute.reservationBlocks.list",
          "compute.reservationSubBlocks.list",
          "compute.reservations.get",
          "compute.reservations.list",
          # A pool of tpu7x names a workload policy; whether GKE requires both was never tested.
          "compute.resourcePolicies.get",
          "compute.resourcePolicies.use",
          "container.operations.get",
          "container.operations.list",
        ]
        # IAM has no permissions on node pools: creating and deleting one is an update of the cluster, and so is
        # cancelling an operation.
        cluster = [
          "container.clusters.get",
          "container.clusters.update",
        ]
      }
      compute = {
        # The policy, the template and the group of a slice. Whoever makes a template, or a group of it, must be allowed to
        # make what it describes: hosts, with disks, labels, tags and an account. Which of these Compute Engine asks for at
        # which call is not documented in one place, and was never tested.
        compute = [
          "compute.disks.create",
          "compute.futureReservations.list",
          "compute.globalOperations.list",
          "compute.images.useReadOnly",
          "compute.instanceGroupManagers.create",
          "compute.instanceGroupManagers.delete",
          "compute.instanceGroupManagers.get",
          "compute.instanceGroupManagers.list",
          "compute.instanceGroupManagers.update",
          "compute.instanceGroups.create",
          "compute.instanceGroups.delete",
          "compute.instanceTemplates.get", # those of TPUNodeGroups too, whose names are others'
          "compute.instanceTemplates.list",
          "compute.instanceTemplates.useReadOnly",
          "compute.instances.create",
          "compute.instances.list",
          "compute.instances.setLabels",
          "compute.instances.setServiceAccount",
          "compute.instances.setTags",
          "compute.regionOperations.list",
          "compute.reservationBlocks.list",
          "compute.reservationSubBlocks.list",
          "compute.reservations.get",
          "compute.reservations.list",
          "compute.resourcePolicies.create",
          "compute.resourcePolicies.delete",
          "compute.resourcePolicies.get",
          "compute.resourcePolicies.list",
          "compute.resourcePolicies.use",
          "compute.subnetworks.use",
          "compute.zoneOperations.list",
        ]
        # Who may set the metadata of a machine can run what it likes there.
        hosts = [
          "compute.instanceTemplates.create",
          "compute.instanceTemplates.delete",
          "compute.instances.delete",
          "compute.instances.setMetadata",
        ]
      }
    }
    sweep = {
      memory        = "512Mi"
      max_instances = var.max_instances
      records       = true
      publishes_to  = ["requests-{cluster}", "updates-{cluster}", "questions-{cluster}", "notifications-{cluster}"]
      # It only reads and requests reconciliation: reconcile makes all changes.
      gke = {
        project = [
          "compute.futureReservations.list",
          "compute.reservationBlocks.list",
          "compute.reservationSubBlocks.list",
          "compute.reservations.get",
          "compute.reservations.list",
          "container.operations.get",
          "container.operations.list",
        ]
        cluster = ["container.clusters.get"]
      }
      compute = {
        compute = [
          "compute.futureReservations.list",
          "compute.globalOperations.list",
          "compute.instanceGroupManagers.list",
          "compute.instanceTemplates.list",
          "compute.reservationBlocks.list",
          "compute.reservationSubBlocks.list",
          "compute.reservations.get",
          "compute.reservations.list",
          "compute.resourcePolicies.list",
        ]
      }
    }

    # It alone has the addresses and secrets of targets, and it alone sends anything outside of Google Cloud: it has neither
    # records nor topics. Each of its instances serves 4 targets at once; one that is down holds a turn for seconds.
    notify = {
      memory        = "512Mi"
      max_instances = 2
      records       = false
      publishes_to  = []
      gke           = {}
      compute       = {}
    }
  }

  # Where the targets of notifications are mounted, if a secret has them: docs/operating/notifications.md.
  targets_folder = "/targets"
}

data "archive_file" "functions" {
  type             = "zip"
  source_dir       = "${path.module}/../../build/functions"
  output_path      = "${path.module}/../../build/functions.zip"
  output_file_mode = "0644"
}

resource "google_storage_bucket" "functions" {
  name                        = local.functions_bucket
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = true # all of it can be made again

  depends_on = [google_project_service.api]
}

# The functions' images. Without a repository of ours they go to one that is shared by all functions of the project.
resource "google_artifact_registry_repository" "functions" {
  repository_id = "tpu-slice-functions"
  location      = var.region
  format        = "DOCKER"
  description   = "The functions of the TPU slice provisioner, as Cloud Build makes them"

  depends_on = [google_project_service.api]
}

# Named by its content: a function is redeployed only if its source changed, or a label: version and commit.
resource "google_storage_bucket_object" "functions" {
  name   = "functions-${data.archive_file.functions.output_sha256}.zip"
  bucket = google_storage_bucket.functions.name
  source = data.archive_file.functions.output_path
}

resource "google_cloudfunctions2_function" "function" {
  for_each = local.functions

  name     = "tpu-slice-${each.key}"
  location = var.region

  build_config {
    runtime           = "python311"
    entry_point       = each.key
    service_account   = google_service_account.build.id
    docker_repository = google_artifact_registry_repository.functions.id

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
      LOG_EXECUTION_ID     = "true" # as Cloud Functions sets it where nobody does: so that each apply finds what it says
      NOTIFICATION_TARGETS = each.key == "notify" && var.notification_targets != "" ? "${local.targets_folder}/targets.json" : ""
      VERSION              = local.version
    }

    # Each read gets the latest version: a secret that is rotated counts without a build.
    dynamic "secret_volumes" {
      for_each = each.key == "notify" && var.notification_targets != "" ? [var.notification_targets] : []

      content {
        mount_path = local.targets_folder
        project_id = var.project
        secret     = secret_volumes.value

        versions {
          version = "latest"
          path    = "targets.json"
        }
      }
    }
  }

  depends_on = [
    time_sleep.agents,
    time_sleep.build,
  ]
}
