# Triton's nodes. GKE adds one when a pod waits for a GPU, and removes it when none of its pods needs it.
resource "google_container_node_pool" "triton" {
  name               = "triton-node-pool"
  cluster            = google_container_cluster.cluster.id
  node_locations     = [var.zone]
  initial_node_count = var.triton_min_node_count
  max_pods_per_node  = var.max_pods_per_node

  autoscaling {
    min_node_count = var.triton_min_node_count
    max_node_count = var.triton_node_count
  }

  management {
    auto_repair  = true
    auto_upgrade = true
  }

  # There may be no other GPU to move to: nodes are upgraded in their places, one after the other.
  upgrade_settings {
    max_surge       = 0
    max_unavailable = 1
  }

  node_config {
    machine_type    = var.machine_type
    disk_type       = var.disk_type
    disk_size_gb    = var.disk_size_gb
    image_type      = "COS_CONTAINERD"
    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"] # what nodes may do, their roles say
    spot            = var.triton_spot
    labels          = { gpu-node-pool = "true" }

    guest_accelerator {
      type  = var.accelerator_type
      count = var.accelerator_count

      # GKE installs the driver that is for the node's image, signed, before pods come: no DaemonSet of somebody's.
      gpu_driver_installation_config {
        gpu_driver_version = var.gpu_driver_version
      }
    }

    # GKE sets it only if another pool is there first. Pods that ask for a GPU tolerate it by themselves: also on spot, whose
    # own taint would keep nobody else away.
    taint {
      key    = "nvidia.com/gpu"
      value  = "present"
      effect = "NO_SCHEDULE"
    }

    gvnic {
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

  # How many there are is the autoscaler's. Another least number would make the pool anew.
  lifecycle {
    ignore_changes = [initial_node_count]
  }

  # What needs no GPU has its nodes first.
  depends_on = [google_container_node_pool.cpu]
}

# What is not wrong, and does not serve.
check "triton_runs_on_the_gpus" {
  assert {
    condition     = !contains(["nvidia-tesla-p4", "nvidia-tesla-p100", "nvidia-tesla-v100"], var.accelerator_type)
    error_message = <<-EOT
      Triton's images since 25.08 are of CUDA 13, which has left out ${var.accelerator_type}: serve with an older image.
    EOT
  }
}

check "the_machine_type_is_known" {
  assert {
    condition     = local.known_machine
    error_message = <<-EOT
      ${var.machine_type} is not in locals.tf: nobody has compared it with accelerator_type, accelerator_count and disk_type.
    EOT
  }
}
