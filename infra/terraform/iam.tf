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

resource "google_project_iam_member" "build" {
  for_each = toset(["roles/artifactregistry.writer", "roles/logging.logWriter", "roles/storage.objectViewer"])

  project = var.project
  role    = each.key
  member  = google_service_account.build.member
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
      for topic in function.publishes_to : "${name}/${topic}" => { function = name, topic = topic }
    }
  ]...)

  topic  = google_pubsub_topic.topic[each.value.topic].id
  role   = "roles/pubsub.publisher"
  member = google_service_account.function[each.value.function].member
}

# Pub/Sub's service agent moves messages to the dead-letter topic: it acknowledges them in the subscription, and
# publishes them to the topic.
locals {
  pubsub_agent = join("", [
    "serviceAccount:service-${data.google_project.provisioner.number}",
    "@gcp-sa-pubsub.iam.gserviceaccount.com",
  ])
}

resource "google_pubsub_topic_iam_member" "dead_letters" {
  for_each = toset([for row in local.subscriptions : row.dead_letter_topic if row.dead_letter_topic != null])

  topic  = google_pubsub_topic.topic[each.key].id
  role   = "roles/pubsub.publisher"
  member = local.pubsub_agent
}

resource "google_pubsub_subscription_iam_member" "dead_letters" {
  for_each = { for name, row in local.subscriptions : name => row if row.dead_letter_topic != null }

  subscription = google_pubsub_subscription.subscription[each.key].id
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub_agent
}

# Records

resource "google_project_iam_member" "records" {
  for_each = local.functions

  project = var.project
  role    = "roles/datastore.user"
  member  = google_service_account.function[each.key].member
}

# GKE, in each project that has clusters

locals {
  gke_access = {
    for pair in setproduct(keys(local.functions), local.gke_projects) :
    "${pair[0]}/${pair[1]}" => { function = pair[0], project = pair[1] }
    if length(local.functions[pair[0]].gke) > 0
  }
}

resource "google_project_iam_custom_role" "gke" {
  for_each = local.gke_access

  project     = each.value.project
  role_id     = "tpuSlice${title(each.value.function)}"
  title       = "TPU slice provisioner: ${each.value.function}"
  permissions = local.functions[each.value.function].gke
}

resource "google_project_iam_member" "gke" {
  for_each = local.gke_access

  project = each.value.project
  role    = google_project_iam_custom_role.gke[each.key].id
  member  = google_service_account.function[each.value.function].member

  lifecycle {
    precondition {
      condition = alltrue([
        for email in values(local.node_service_accounts) : endswith(email, ".iam.gserviceaccount.com")
      ])
      error_message = "TPU nodes need a service account of their own: set pools.service_account in each cluster's file."
    }
  }
}

# Whoever creates nodes must be allowed to act as their service account.
resource "google_service_account_iam_member" "nodes" {
  for_each = toset(compact(concat(values(local.node_service_accounts), local.chosen_service_accounts)))

  service_account_id = "projects/-/serviceAccounts/${each.key}"
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.function["reconcile"].member
}
