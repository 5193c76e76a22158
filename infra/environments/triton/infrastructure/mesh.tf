# Managed Cloud Service Mesh: its control plane is Google's. It is a feature of the project's fleet, of which there is one,
# and this cluster is a member. Google provisions it within some minutes of the apply: `gcloud container fleet mesh describe`.

# The fleet has none, or one already: then other clusters may live by it, and it is neither made nor taken away here. Members
# of the fleet get no mesh unless they are told: there is no default for all.
resource "google_gke_hub_feature" "mesh" {
  for_each = toset(var.mesh_feature == "new" ? ["servicemesh"] : [])

  name     = each.key
  location = "global"

  depends_on = [google_project_service.api]
}

resource "google_gke_hub_feature_membership" "mesh" {
  location            = "global"
  feature             = "servicemesh"
  membership          = google_container_cluster.cluster.fleet[0].membership_id
  membership_location = google_container_cluster.cluster.fleet[0].membership_location

  mesh {
    management = "MANAGEMENT_AUTOMATIC"
  }

  # Its parts in the cluster need nodes, also to be taken away.
  depends_on = [
    google_gke_hub_feature.mesh,
    google_container_node_pool.cpu,
  ]
}
