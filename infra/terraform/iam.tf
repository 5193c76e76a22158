# Permissions. Each function has a service account of its own, and so has each push to one; none can be called from
# outside.

resource "google_service_account" "function" {
  for_each = local.functions

  account_id   = "tpu-slice-${each.key}"
  display_name = "TPU slice provisioner: ${each.key}"
}

resource "google_service_account" "push" {
  for_each = local.functions

  account_id   = "tpu-slice-push-${each.key}"
  display_name = "TPU slice provisioner: pushes messages to ${each.key}"
}

resource "google_service_account" "build" {
  account_id   = "tpu-slice-build"
  display_name = "TPU slice provisioner: builds the functions"
}

# It writes the build's log. Cloud Logging has no narrower place to grant it than the project.
resource "google_project_iam_member" "build_logs" {
  project = var.project
  role    = "roles/logging.logWriter"
  member  = google_service_account.build.member
}

resource "google_artifact_registry_repository_iam_member" "build" {
  repository = google_artifact_registry_repository.functions.name
  location   = google_artifact_registry_repository.functions.location
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.build.member
}

# It reads the source: ours, and the copies that Cloud Functions makes of it in buckets of its own. They do not exist before
# the first function; the condition is Google's (https://cloud.google.com/functions/docs/securing/build-custom-sa).
resource "google_storage_bucket_iam_member" "build" {
  bucket = google_storage_bucket.functions.name
  role   = "roles/storage.objectViewer"
  member = google_service_account.build.member
}

resource "google_project_iam_member" "build_sources" {
  project = var.project
  role    = "roles/storage.objectViewer"
  member  = google_service_account.build.member

  condition {
    title = "The sources of functions"
    expression = join("", [
      "resource.type == \"storage.googleapis.com/Object\" && (",
      "resource.name.startsWith(\"projects/_/buckets/gcf-v2-sources-\") || ",
      "resource.name.startsWith(\"projects/_/buckets/gcf-v2-uploads-\") || ",
      "resource.name.startsWith(\"projects/_/buckets/run-sources-\"))",
    ])
  }
}

# What was granted is in force everywhere after some two minutes, says Google
# (https://cloud.google.com/iam/docs/access-change-propagation). A function that is built earlier fails, and nothing tells
# when it is time.
resource "time_sleep" "build" {
  create_duration = "120s"
  triggers = {
    images  = google_artifact_registry_repository_iam_member.build.id
    logs    = google_project_iam_member.build_logs.id
    source  = google_storage_bucket_iam_member.build.id
    sources = google_project_iam_member.build_sources.id
  }
}

# Messages

resource "google_cloud_run_v2_service_iam_member" "push" {
  for_each = local.functions

  name     = google_cloudfunctions2_function.function[each.key].name
  location = var.region
  role     = "roles/run.invoker"
  member   = google_service_account.push[each.key].member
}

resource "google_pubsub_topic_iam_member" "function" {
  for_each = merge([
    for name, function in local.functions : {
      for pair in setproduct(function.publishes_to, keys(local.clusters)) :
      "${name}/${replace(pair[0], "{cluster}", pair[1])}" => {
        function = name, topic = replace(pair[0], "{cluster}", pair[1])
      }
    }
  ]...)

  topic  = google_pubsub_topic.topic[each.value.topic].id
  role   = "roles/pubsub.publisher"
  member = google_service_account.function[each.value.function].member
}

# Pub/Sub's own account signs each push in the name of the account that pushes. Pub/Sub's role in the project allows it to
# do so for any account; this does not rest on that.
resource "google_service_account_iam_member" "push" {
  for_each = local.functions

  service_account_id = google_service_account.push[each.key].id
  role               = "roles/iam.serviceAccountTokenCreator"
  member             = google_project_service_identity.agent["pubsub"].member

  depends_on = [time_sleep.agents]
}

# It moves messages to the dead-letter topic: it acknowledges them in the subscription, and publishes them to the topic.
resource "google_pubsub_topic_iam_member" "dead_letters" {
  for_each = toset([for row in local.subscriptions : row.dead_letter_topic if row.dead_letter_topic != null])

  topic  = google_pubsub_topic.topic[each.key].id
  role   = "roles/pubsub.publisher"
  member = google_project_service_identity.agent["pubsub"].member

  depends_on = [time_sleep.agents]
}

resource "google_pubsub_subscription_iam_member" "dead_letters" {
  for_each = { for name, row in local.subscriptions : name => row if row.dead_letter_topic != null }

  subscription = google_pubsub_subscription.subscription[each.key].id
  role         = "roles/pubsub.subscriber"
  member       = google_project_service_identity.agent["pubsub"].member

  depends_on = [time_sleep.agents]
}

# Records. IAM knows no collections: each function but notify may read and write all of this database, and no other one.

resource "google_project_iam_member" "records" {
  for_each = { for name, function in local.functions : name => function if function.records }

  project = var.project
  role    = "roles/datastore.user"
  member  = google_service_account.function[each.key].member

  condition {
    title      = "The database of the TPU slice provisioner"
    expression = "resource.name == \"${google_firestore_database.records.id}\""
  }
}

# GKE, in each project that has clusters. Another provisioner may serve other clusters of the same project: what is made
# there is named after this one's project.

locals {
  gke_roles = merge([
    for name, function in local.functions : merge([
      for scope, permissions in function.gke : {
        for project in local.gke_projects : "${name}/${scope}/${project}" => {
          function = name, scope = scope, project = project, permissions = permissions
        }
      }
    ]...)
  ]...)

  gke_clusters = merge([
    for name, function in local.functions : {
      for id, cluster in local.places : "${name}/${id}" => { function = name, cluster = id, project = cluster.project }
      if contains(keys(function.gke), "cluster")
    }
  ]...)
}

resource "google_project_iam_custom_role" "gke" {
  for_each = local.gke_roles

  project = each.value.project
  role_id = join("_", [
    "${var.role_prefix}${title(each.value.function)}${title(each.value.scope)}",
    replace(var.project, "-", "_"),
  ])
  title       = "TPU slice provisioner of ${var.project}: ${each.value.function}"
  permissions = each.value.permissions
}

# Operations and workload policies are of the project, and IAM has no names for them.
resource "google_project_iam_member" "gke_project" {
  for_each = { for key, role in local.gke_roles : key => role if role.scope == "project" }

  project = each.value.project
  role    = google_project_iam_custom_role.gke[each.key].id
  member  = google_service_account.function[each.value.function].member
}

# In a project with other clusters too, these only. GKE asks IAM about `projects/P/zones/Z/clusters/C` (or `locations`),
# as the audit log shows for CreateNodePool. What it asks when an operation is cancelled is not known: any resource that
# is no cluster passes. For Kubernetes' own objects such a condition would grant nothing; no function reads any.
resource "google_project_iam_member" "gke_cluster" {
  for_each = local.gke_clusters

  project = each.value.project
  role    = google_project_iam_custom_role.gke["${each.value.function}/cluster/${each.value.project}"].id
  member  = google_service_account.function[each.value.function].member

  condition {
    title = "Cluster ${each.value.cluster}"
    expression = join(" || ", [
      "resource.type != \"container.googleapis.com/Cluster\"",
      "resource.name.endsWith(\"${local.places[each.value.cluster].suffix}\")",
    ])
  }

  lifecycle {
    precondition {
      condition = alltrue([
        for email in values(local.node_service_accounts) : endswith(email, ".iam.gserviceaccount.com")
      ])
      error_message = "TPU nodes need a service account of their own: set pools.service_account in each cluster's file."
    }
    precondition {
      condition = alltrue([
        for project in local.gke_projects :
        length([for place in values(local.places) : place if place.project == project]) <= 20
      ])
      error_message = "IAM takes one role for one account with at most 20 conditions: serve at most 20 clusters of a project."
    }
  }
}

# Compute Engine, in each project with slices of self-managed clusters.

locals {
  compute_roles = merge([
    for name, function in local.functions : merge([
      for scope, permissions in function.compute : {
        for project in local.compute_projects : "${name}/${scope}/${project}" => {
          function = name, scope = scope, project = project, permissions = permissions
        }
      }
    ]...)
  ]...)
}

resource "google_project_iam_custom_role" "compute" {
  for_each = local.compute_roles

  project = each.value.project
  role_id = join("_", [
    "${var.role_prefix}${title(each.value.function)}${title(each.value.scope)}",
    replace(var.project, "-", "_"),
  ])
  title       = "TPU slice provisioner of ${var.project}: ${each.value.function}"
  permissions = each.value.permissions
}

# IAM has no names of workload policies and of instance groups, nor of operations
# (https://cloud.google.com/iam/docs/conditions-resource-attributes).
resource "google_project_iam_member" "compute_project" {
  for_each = { for key, role in local.compute_roles : key => role if role.scope == "compute" }

  project = each.value.project
  role    = google_project_iam_custom_role.compute[each.key].id
  member  = google_service_account.function[each.value.function].member
}

# It has those of machines and of templates: only what has a name as slices have it is changed. Another provisioner may
# have slices in the same project; their names differ, and each deletes only what its description says is its own.
resource "google_project_iam_member" "compute_hosts" {
  for_each = { for key, role in local.compute_roles : key => role if role.scope == "hosts" }

  project = each.value.project
  role    = google_project_iam_custom_role.compute[each.key].id
  member  = google_service_account.function[each.value.function].member

  condition {
    title = "Hosts and templates of TPU slices"
    expression = join(" || ", [
      "resource.type != \"compute.googleapis.com/Instance\" && resource.type != \"compute.googleapis.com/InstanceTemplate\"",
      "resource.name.extract(\"/instances/{name}\").startsWith(\"tpu-\")",
      "resource.name.extract(\"/instanceTemplates/{name}\").startsWith(\"tpu-\")",
    ])
  }

  lifecycle {
    precondition {
      condition = alltrue([
        for id in keys(local.self_managed) : endswith(local.node_service_accounts[id], ".iam.gserviceaccount.com")
      ])
      error_message = "TPU hosts need a service account of their own: set pools.service_account in each cluster's file."
    }
  }
}

# Whoever creates nodes must be allowed to act as their service account.
resource "google_service_account_iam_member" "nodes" {
  for_each = setsubtract(
    compact(concat(values(local.node_service_accounts), local.allowed_service_accounts)),
    local.patterns_of_service_accounts,
  )

  service_account_id = "projects/-/serviceAccounts/${each.key}"
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.function["reconcile"].member
}

check "granted_by_hand" {
  assert {
    condition     = length(local.patterns_of_service_accounts) == 0
    error_message = <<-EOT
      Pods may name any service account that matches ${join(", ", local.patterns_of_service_accounts)} for their nodes.
      Which these are cannot be told here: grant roles/iam.serviceAccountUser on each, by hand, to
      tpu-slice-reconcile@${var.project}.iam.gserviceaccount.com. Without it, node pools with that account are refused.
    EOT
  }
}
