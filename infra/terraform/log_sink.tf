# GKE's audit log has an entry when an operation on a node pool has ended, or when a call was refused at once. The
# filter passes only pools whose names have our form (shared/tpu_slices/domain/model/slices.py); the entries are parsed
# by shared/tpu_slices/wire/operations.py. Another provisioner may serve other clusters of the same project: each sink is
# named after its provisioner's project, and passes its clusters only.

locals {
  served_clusters_filter = {
    for project in local.gke_projects : project => join(" OR ", [
      for place in values(local.places) :
      "(resource.labels.location=\"${place.location}\" AND resource.labels.cluster_name=\"${place.name}\")"
      if place.project == project
    ])
  }
}

resource "google_logging_project_sink" "operations" {
  for_each = local.gke_projects

  project                = each.key
  name                   = "tpu-slice-operations-${var.project}"
  description            = "Ended operations on the node pools of the TPU slice provisioner in ${var.project}"
  destination            = "pubsub.googleapis.com/${google_pubsub_topic.topic["cloud-operations"].id}"
  unique_writer_identity = true

  filter = <<-EOT
    resource.type="gke_nodepool"
    AND log_id("cloudaudit.googleapis.com/activity")
    AND protoPayload.serviceName="container.googleapis.com"
    AND protoPayload.methodName=~"[.](Create|Delete|Update)NodePool$"
    AND resource.labels.nodepool_name=~"^tpu-[a-z0-9]([-a-z0-9]*[a-z0-9])?-[a-z2-7]{13}-[1-9][0-9]{0,3}$"
    AND (${local.served_clusters_filter[each.key]})
    AND (operation.last=true OR (NOT operation:* AND severity>=ERROR))
  EOT
}

resource "google_pubsub_topic_iam_member" "operations" {
  for_each = local.gke_projects

  topic  = google_pubsub_topic.topic["cloud-operations"].id
  role   = "roles/pubsub.publisher"
  member = google_logging_project_sink.operations[each.key].writer_identity
}

# Compute Engine's audit log has the same of each part of a slice in a self-managed cluster. It does not say which cluster
# that is: where several share a project, or several provisioners do, who hears of a slice that is not its own passes it by.
resource "google_logging_project_sink" "compute_operations" {
  for_each = local.compute_projects

  project                = each.key
  name                   = "tpu-slice-compute-operations-${var.project}"
  description            = "Ended operations on slices of the TPU slice provisioner in ${var.project}"
  destination            = "pubsub.googleapis.com/${google_pubsub_topic.topic["cloud-operations"].id}"
  unique_writer_identity = true

  filter = <<-EOT
    log_id("cloudaudit.googleapis.com/activity")
    AND protoPayload.serviceName="compute.googleapis.com"
    AND protoPayload.methodName=~"[.](resourcePolicies|instanceTemplates|instanceGroupManagers)[.](insert|delete|patch)$"
    AND protoPayload.resourceName=~"/tpu-[a-z0-9]([-a-z0-9]*[a-z0-9])?-[a-z2-7]{13}-[1-9][0-9]{0,3}$"
    AND (operation.last=true OR (NOT operation:* AND severity>=ERROR))
  EOT
}

resource "google_pubsub_topic_iam_member" "compute_operations" {
  for_each = local.compute_projects

  topic  = google_pubsub_topic.topic["cloud-operations"].id
  role   = "roles/pubsub.publisher"
  member = google_logging_project_sink.compute_operations[each.key].writer_identity
}
