# What the configuration of the cluster needs, so that nobody types it again.

output "project_id" {
  description = "The project of the environment."
  value       = var.project_id
}

output "cluster" {
  description = "The cluster: `gcloud container clusters get-credentials NAME --location LOCATION --dns-endpoint`."
  value = {
    id           = google_container_cluster.cluster.id
    name         = google_container_cluster.cluster.name
    location     = google_container_cluster.cluster.location
    zone         = var.zone
    dns_endpoint = google_container_cluster.cluster.control_plane_endpoints_config[0].dns_endpoint_config[0].endpoint
  }
}

output "workload_pool" {
  description = "The pool of identities of the cluster's service accounts."
  value       = "${var.project_id}.svc.id.goog"
}

output "service_accounts" {
  description = "The addresses of the accounts of nodes, training workloads and TensorBoard's uploaders; the last may be null."
  value = {
    nodes       = google_service_account.nodes.email
    training    = google_service_account.training.email
    tensorboard = one(values(google_service_account.tensorboard)[*].email)
  }
}

output "bucket" {
  description = "The bucket of datasets, checkpoints and logs."
  value       = google_storage_bucket.artifacts.url
}

output "image_repository" {
  description = "Where training images are pushed to: LOCATION-docker.pkg.dev/PROJECT/NAME."
  value       = google_artifact_registry_repository.images.registry_uri
}

output "tensorboard" {
  description = "The full name of TensorBoard, or null."
  value       = one(values(google_vertex_ai_tensorboard.tensorboard)[*].id)
}

output "flavors" {
  description = "The static slices by what is alike to Kueue: labels and taints of their nodes, slices, hosts and chips."
  value       = local.flavors
}

output "chips" {
  description = "The chips of all static slices."
  value       = sum(concat([0], values(local.flavors)[*].chips))
}

output "cpu_pool" {
  description = "The label that selects the CPU pool, and how many nodes it has."
  value       = { node_labels = { default-node-pool = "true" }, nodes = var.cpu_pool_node_count }
}

output "provisioner_settings" {
  description = "Settings with which the provisioner serves this cluster: infra/clusters/PROJECT/CLUSTER.yaml."
  value       = local.provisioner_settings
}

locals {
  # Its slices have the same nodes as the static ones. As many chips as the ranges have hosts for: most hosts have 4.
  provisioner_settings = yamlencode({
    path = "projects/${var.project_id}/locations/${var.region}/clusters/${var.cluster_name}"
    zone = var.zone
    pools = {
      service_account   = "${var.gke_sa_name}@${var.project_id}.iam.gserviceaccount.com"
      boot_disk_gb      = var.tpu_boot_disk_gb
      max_pods_per_node = var.tpu_max_pods_per_node
      image_streaming   = true
    }
    policy = { chips_per_cluster = max(1, 4 * var.provisioned_hosts) }
    # The slices of one run are bought together. The pods of a gang are tried on no static slice: where there are such, a run
    # that wants to be a gang says so.
    gangs = length(local.slices) == 0 ? "multislice" : "none"
  })
}
