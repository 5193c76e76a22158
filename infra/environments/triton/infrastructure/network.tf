# Nodes have no public addresses: what they ask of the internet, such as NVIDIA's images, goes through NAT; what they ask of
# Google stays in its network. Clients come in through the load balancer of the ingress gateway.

resource "google_compute_network" "network" {
  name                    = var.network_name
  auto_create_subnetworks = false
  routing_mode            = "REGIONAL"

  depends_on = [google_project_service.api]
}

resource "google_compute_subnetwork" "nodes" {
  name                     = var.subnet_name
  region                   = var.region
  network                  = google_compute_network.network.id
  ip_cidr_range            = var.subnet_ip_range
  private_ip_google_access = true

  secondary_ip_range {
    range_name    = "ip-range-services"
    ip_cidr_range = var.services_ip_range
  }

  secondary_ip_range {
    range_name    = "ip-range-pods"
    ip_cidr_range = var.pods_ip_range
  }
}

resource "google_compute_router" "nat" {
  name    = "${var.cluster_name}-nat"
  region  = var.region
  network = google_compute_network.network.id
}

resource "google_compute_router_nat" "nat" {
  name                               = "${var.cluster_name}-nat"
  region                             = var.region
  router                             = google_compute_router.nat.name
  nat_ip_allocate_option             = "AUTO_ONLY"
  source_subnetwork_ip_ranges_to_nat = "LIST_OF_SUBNETWORKS"

  subnetwork {
    name                    = google_compute_subnetwork.nodes.id
    source_ip_ranges_to_nat = ["ALL_IP_RANGES"]
  }

  log_config {
    enable = true
    filter = "ERRORS_ONLY"
  }
}
