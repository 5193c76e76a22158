# The relay runs in the cluster and has no service account: its Kubernetes ServiceAccount is the identity.
# Clusters of one project share a workload identity pool, so there the same ServiceAccount of two clusters is one
# identity: put clusters into projects of their own where one's administrators must not speak for the other.

locals {
  relays = {
    for id, project in local.cluster_projects :
    id => join("/", [
      "principal://iam.googleapis.com/projects/${data.google_project.gke[project].number}",
      "locations/global/workloadIdentityPools/${project}.svc.id.goog",
      "subject/ns/${var.relay_identity.namespace}/sa/${var.relay_identity.service_account}",
    ])
  }
}

# What is a cluster's own is its relay's: it publishes to its topic, and pulls its subscription.
resource "google_pubsub_topic_iam_member" "relay" {
  for_each = { for name, row in local.topics : name => row if row.cluster != "" }

  topic  = google_pubsub_topic.topic[each.key].id
  role   = "roles/pubsub.publisher"
  member = local.relays[each.value.cluster]
}

resource "google_pubsub_subscription_iam_member" "relay" {
  for_each = { for name, row in local.subscriptions : name => row if row.cluster != "" && row.function == null }

  subscription = google_pubsub_subscription.subscription[each.key].id
  role         = "roles/pubsub.subscriber"
  member       = local.relays[each.value.cluster]
}

resource "google_artifact_registry_repository" "images" {
  repository_id = "tpu-slice-provisioner"
  location      = var.region
  format        = "DOCKER"
  description   = "The relay of the TPU slice provisioner"

  docker_config {
    immutable_tags = true
  }

  depends_on = [google_project_service.api]
}
