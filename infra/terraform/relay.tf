# A relay on GKE runs in its cluster and has no service account in IAM: its Kubernetes ServiceAccount is the principal. Clusters
# of one project share a workload identity pool, in which the cluster is no part of the name. Hence each cluster's relay
# has a ServiceAccount of another name, relay-CLUSTER, and no relay can speak for another cluster.
#
# Whoever may create ServiceAccounts and pods in the namespace of one cluster can make one with the name of another's, and
# speak for it: IAM has principals for all pods of a cluster, and for a ServiceAccount of all clusters, and none for a
# ServiceAccount of one cluster. Use a project per cluster if the administrators of one must not be able to do so. If two
# provisioners serve clusters of one project, give these different ids.
#
# Google does not know the ServiceAccounts of a self-managed cluster. Its relay is a service account that is made here, whose
# key its operator makes; or whoever `relay_members` names: one of a workload identity pool that trusts the cluster, or the
# account of the machines that it runs on (../../docs/self-managed.md). No key is made here: Terraform's state would have it.

locals {
  relay_namespace = "tpu-slice-provisioner"

  relays = merge(
    {
      for id, place in local.places :
      id => join("/", [
        "principal://iam.googleapis.com/projects/${data.google_project.gke[place.project].number}",
        "locations/global/workloadIdentityPools/${place.project}.svc.id.goog",
        "subject/ns/${local.relay_namespace}/sa/relay-${id}",
      ])
    },
    {
      for id in keys(local.self_managed) :
      id => contains(keys(var.relay_members), id) ? var.relay_members[id] : google_service_account.relay[id].member
    },
  )

  # By id of a self-managed cluster, the name of the service account of its relay, in which an id may be too long.
  relay_accounts = {
    for id in keys(local.self_managed) :
    id => "tpu-relay-${length(id) <= 20 ? id : substr(sha256(id), 0, 20)}" if !contains(keys(var.relay_members), id)
  }
}

resource "google_service_account" "relay" {
  for_each = local.relay_accounts

  account_id   = each.value
  display_name = "TPU slice provisioner: relay of ${each.key}"
}

# The relay of a cluster may publish to that cluster's topic for facts alone, and pull that cluster's subscriptions.
resource "google_pubsub_topic_iam_member" "relay" {
  for_each = toset(keys(local.clusters))

  topic  = google_pubsub_topic.topic["facts-${each.key}"].id
  role   = "roles/pubsub.publisher"
  member = local.relays[each.key]
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

# GKE pulls the image with the account of the nodes. Elsewhere it is the relay's account that may.
resource "google_artifact_registry_repository_iam_member" "relay" {
  for_each = local.self_managed

  repository = google_artifact_registry_repository.images.name
  location   = google_artifact_registry_repository.images.location
  role       = "roles/artifactregistry.reader"
  member     = local.relays[each.key]
}
