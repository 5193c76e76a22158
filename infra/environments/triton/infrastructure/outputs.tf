# What serving needs, so that nobody types it again.

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

output "network" {
  description = "The network: what the mesh and load balancers make in it must be gone before it can go."
  value       = google_compute_network.network.name
}

output "mesh" {
  description = "The cluster's membership in the fleet, and the name by which the mesh tells its state: ACTIVE once it serves."
  value = {
    membership = google_gke_hub_feature_membership.mesh.membership
    location   = google_gke_hub_feature_membership.mesh.membership_location
    member = join("/", [
      "projects", data.google_project.project.number,
      "locations", google_gke_hub_feature_membership.mesh.membership_location,
      "memberships", google_gke_hub_feature_membership.mesh.membership,
    ])
  }
}

output "namespace" {
  description = "The namespace of Triton, whose account in it may read the models."
  value       = var.triton_namespace
}

output "service_accounts" {
  description = "The addresses of the accounts of nodes and Triton, and the name of Triton's ServiceAccount in Kubernetes."
  value = {
    nodes      = google_service_account.nodes.email
    triton     = google_service_account.triton.email
    kubernetes = var.triton_sa_name
  }
}

output "bucket" {
  description = "The bucket of models."
  value       = google_storage_bucket.models.url
}

output "model_repository" {
  description = "The folder in the bucket that has a folder for each model."
  value       = "${google_storage_bucket.models.url}/model_repository"
}

output "image_repository" {
  description = "Where serving images are pushed to: LOCATION-docker.pkg.dev/PROJECT/NAME."
  value       = google_artifact_registry_repository.images.registry_uri
}

output "gpus" {
  description = "The GPUs of a node, how many nodes there can be, their label, and the taint that pods with GPUs tolerate."
  value = {
    type        = var.accelerator_type
    count       = var.accelerator_count
    nodes       = var.triton_node_count
    node_labels = { gpu-node-pool = "true" }
    node_taints = [{ key = "nvidia.com/gpu", value = "present", effect = "NoSchedule" }]
  }
}
