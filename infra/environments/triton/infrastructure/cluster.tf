# A regional cluster: three replicas of the control plane, so that an upgrade of it stops no rollout. All its nodes are in
# one zone, which has the GPUs.
resource "google_container_cluster" "cluster" {
  name                = var.cluster_name
  description         = var.cluster_description
  location            = var.region
  node_locations      = [var.zone]
  deletion_protection = var.deletion_protection
  resource_labels     = { mesh_id = "proj-${data.google_project.project.number}" } # the console finds the mesh's metrics by it

  release_channel {
    channel = var.gke_release_channel
  }

  network           = google_compute_network.network.id
  subnetwork        = google_compute_subnetwork.nodes.id
  networking_mode   = "VPC_NATIVE"
  datapath_provider = "ADVANCED_DATAPATH" # network policies

  default_max_pods_per_node = var.max_pods_per_node

  ip_allocation_policy {
    cluster_secondary_range_name  = "ip-range-pods"
    services_secondary_range_name = "ip-range-services"
  }

  private_cluster_config {
    enable_private_nodes = true
  }

  # The control plane is reached by its name alone, from anywhere: IAM decides who may. It has no address to guard.
  control_plane_endpoints_config {
    dns_endpoint_config {
      allow_external_traffic = true
    }

    ip_endpoints_config {
      enabled = false
    }
  }

  master_auth {
    client_certificate_config {
      issue_client_certificate = false # which would be valid for years
    }
  }

  workload_identity_config {
    workload_pool = "${var.project_id}.svc.id.goog"
  }

  # The mesh is the fleet's: mesh.tf. GKE registers the cluster, and takes it out again with its deletion.
  fleet {
    project = var.project_id
  }

  # GKE makes this pool with the cluster, and it goes before the others are made. It has the nodes' account, since a project
  # may lack the default one.
  remove_default_node_pool = true
  initial_node_count       = 1

  node_config {
    machine_type    = var.default_pool_machine_type
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]

    workload_metadata_config {
      mode = "GKE_METADATA"
    }

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }
  }

  addons_config {
    # Its controller makes the network endpoint groups by which the mesh's control plane, which is Google's, finds pods
    # (https://cloud.google.com/service-mesh/docs/troubleshooting/troubleshoot-cleanup).
    http_load_balancing {
      disabled = false
    }

    # Of the gateway's pods.
    horizontal_pod_autoscaling {
      disabled = false
    }
  }

  logging_config {
    enable_components = ["SYSTEM_COMPONENTS", "WORKLOADS"]
  }

  # Managed Prometheus reads what a PodMonitoring names: Triton's metrics. DCGM's are the GPUs' own.
  monitoring_config {
    enable_components = ["SYSTEM_COMPONENTS", "DCGM"]

    managed_prometheus {
      enabled = true
    }

    # Said here, since GKE decides it otherwise, and each plan would show that.
    advanced_datapath_observability_config {
      enable_metrics = false
      enable_relay   = false
    }
  }

  cost_management_config {
    enabled = true # costs by namespace
  }

  dynamic "maintenance_policy" {
    for_each = var.maintenance_window[*]

    content {
      recurring_window {
        start_time = maintenance_policy.value.start_time
        end_time   = maintenance_policy.value.end_time
        recurrence = maintenance_policy.value.recurrence
      }
    }
  }

  lifecycle {
    ignore_changes = [node_config] # of the pool that is gone
  }

  depends_on = [
    google_project_service.api,
    google_project_iam_member.nodes,
    google_compute_router_nat.nat, # so that the first pods can pull their images, and the last ones on removal
  ]
}

# For the ingress gateway, the mesh's parts in the cluster, and GKE's own.
resource "google_container_node_pool" "cpu" {
  name              = "cpu-node-pool"
  cluster           = google_container_cluster.cluster.id
  node_locations    = [var.zone]
  node_count        = var.default_pool_node_count
  max_pods_per_node = var.max_pods_per_node

  management {
    auto_repair  = true
    auto_upgrade = true
  }

  upgrade_settings {
    max_surge       = 1
    max_unavailable = 0
  }

  node_config {
    machine_type    = var.default_pool_machine_type
    disk_type       = "pd-balanced"
    disk_size_gb    = 100
    image_type      = "COS_CONTAINERD"
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"] # what nodes may do, their roles say
    labels          = { default-node-pool = "true" }

    # The mesh refuses a cluster that has a pool without it.
    workload_metadata_config {
      mode = "GKE_METADATA"
    }

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }
  }
}
