# The relay runs in the cluster and has no service account in IAM: its Kubernetes ServiceAccount is the principal.
# Clusters of one project share a workload identity pool, so the same ServiceAccount of two clusters is one principal:
# use a project per cluster if the administrators of one must not be able to act as the relay of another.

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

# The relay of a cluster may publish to that cluster's topic, and pull that cluster's subscription.
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
