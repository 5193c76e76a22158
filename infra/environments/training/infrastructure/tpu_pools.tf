# Static slices: each is a node pool, as those that the provisioner buys (shared/tpu_slices/adapters/gke_requests.py), which
# it never touches: they lack its labels.

# Slices of tpu7x with several hosts are placed by a workload policy, which holds their topology; all others by GKE's own
# compact placement.
resource "google_compute_resource_policy" "workload" {
  for_each = local.workload_policies

  region      = var.region
  name        = each.value
  description = "Places static slices of ${each.key} of ${var.cluster_name}"

  workload_policy {
    type                 = "HIGH_THROUGHPUT"
    accelerator_topology = each.key
  }

  depends_on = [google_project_service.api]
}

resource "google_container_node_pool" "tpu" {
  for_each = local.slices

  name              = each.key
  cluster           = google_container_cluster.cluster.id
  node_locations    = [each.value.zone]
  max_pods_per_node = var.tpu_max_pods_per_node

  # A slice has all its hosts or none. `initial_node_count` is not set: a change of it would replace the pool.
  node_count = each.value.scaled ? null : each.value.hosts

  dynamic "autoscaling" {
    for_each = each.value.scaled ? [each.value.hosts] : []

    content {
      min_node_count  = 0
      max_node_count  = autoscaling.value # of the pool's one zone: with total_max_node_count GKE refuses a slice
      location_policy = "ANY"
    }
  }

  # Where a workload policy is named, GKE stores the topology and no type: others would replace the pool at each apply
  # (vllm-project/ci-infra#547).
  dynamic "placement_policy" {
    for_each = each.value.placement == "" ? [] : [each.value]

    content {
      type         = placement_policy.value.placement == "COMPACT" ? "COMPACT" : ""
      tpu_topology = placement_policy.value.topology
      policy_name = (
        placement_policy.value.placement == "COMPACT"
        ? null : google_compute_resource_policy.workload[placement_policy.value.topology].name
      )
    }
  }

  management {
    auto_repair  = each.value.capacity != "flex_start" # GKE refuses both together
    auto_upgrade = true
  }

  # As on the pools of the provisioner: an upgrade makes a pool anew as a whole, under the Jobs that run on it.
  maintenance_policy {
    exclusion_until_end_of_support {
      enabled = true
    }
  }

  # There is no other host to move to: those of a slice are upgraded in their places. Hosts of flex-start never are.
  upgrade_settings {
    strategy        = each.value.capacity == "flex_start" ? "SHORT_LIVED" : "SURGE"
    max_surge       = each.value.capacity == "flex_start" ? null : 0
    max_unavailable = each.value.capacity == "flex_start" ? null : 1
  }

  # Training that is to go ends within two minutes: GKE's hour would hold one of the cluster's few operations.
  node_drain_config {
    grace_termination_duration            = "120s"
    respect_pdb_during_node_pool_deletion = false
  }

  node_config {
    machine_type     = each.value.machine_type
    disk_type        = each.value.boot_disk
    disk_size_gb     = var.tpu_boot_disk_gb
    image_type       = "COS_CONTAINERD"
    service_account  = google_service_account.nodes.email
    oauth_scopes     = ["https://www.googleapis.com/auth/cloud-platform"]
    spot             = each.value.capacity == "spot"
    flex_start       = each.value.capacity == "flex_start" ? true : null
    max_run_duration = each.value.capacity == "flex_start" ? each.value.max_run_duration : null

    labels = each.value.multislice_group == null ? {} : {
      MultisliceGroup     = each.value.multislice_group
      MultisliceGroupSize = tostring(local.groups[each.value.multislice_group].slices)
    }

    gvnic {
      enabled = true
    }

    # As on the spot slices of the provisioner: who has not asked for spot does not get it. GKE itself sets google.com/tpu.
    dynamic "taint" {
      for_each = each.value.capacity == "spot" ? [true] : []

      content {
        key    = "cloud.google.com/gke-spot"
        value  = "true"
        effect = "NO_SCHEDULE"
      }
    }

    dynamic "reservation_affinity" {
      for_each = contains(["reservation", "flex_start"], each.value.capacity) ? [each.value] : []

      content {
        consume_reservation_type = (
          reservation_affinity.value.capacity == "reservation" ? "SPECIFIC_RESERVATION" : "NO_RESERVATION"
        )
        key = (
          reservation_affinity.value.capacity == "reservation" ? "compute.googleapis.com/reservation-name" : null
        )
        values = reservation_affinity.value.capacity == "reservation" ? [reservation_affinity.value.reservation] : null
      }
    }

    # Containers of images on the disk start at once: image streaming reads them from there.
    dynamic "secondary_boot_disks" {
      for_each = each.value.secondary_disk[*]

      content {
        disk_image = secondary_boot_disks.value
        mode       = "CONTAINER_IMAGE_CACHE"
      }
    }

    gcfs_config {
      enabled = true
    }

    workload_metadata_config {
      mode = "GKE_METADATA"
    }

    shielded_instance_config {
      enable_secure_boot          = true
      enable_integrity_monitoring = true
    }
  }

  # A large slice takes longer than the provider's 30 minutes; it retries while GKE is busy with another pool.
  timeouts {
    create = "2h"
    update = "2h"
    delete = "1h"
  }

  # GKE sets these of TPU hosts itself and reports them; unless ignored, each apply would replace the pool
  # (vllm-project/ci-infra@4ee4ce0, terraform/gcp_old/tpu-inference/k8s/workers.tf, which is in use).
  lifecycle {
    ignore_changes = [
      node_config[0].advanced_machine_features,
      node_config[0].guest_accelerator,
      node_config[0].kubelet_config,
    ]
  }

  # The first pools of a new cluster otherwise wait for each other, and Kueue's for all of them.
  depends_on = [google_container_node_pool.cpu]
}
