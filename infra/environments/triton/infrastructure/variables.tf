# Where the environment is, and how its parts are called. In brackets: what another default replaces, and why.
# What several variables say together is checked in preconditions.tf.

variable "project_id" {
  description = "The project of the environment."
  type        = string

  validation {
    condition     = can(regex("^[a-z][-a-z0-9]{4,28}[a-z0-9]$", var.project_id))
    error_message = "The project must be a project id: 6 to 30 characters of a-z, 0-9 and -."
  }
}

variable "region" {
  description = "The region of cluster, subnet, bucket and images, such as us-central1."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "The region must be the name of a region, such as us-central1."
  }
}

variable "zone" {
  description = "The zone of the nodes. It must offer the GPUs: https://cloud.google.com/compute/docs/gpus/gpu-regions-zones."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+-[a-z0-9]+$", var.zone)) && startswith(var.zone, "${var.region}-")
    error_message = "The zone must be one of ${var.region}, such as ${var.region}-a."
  }
}

# Network.

variable "network_name" {
  description = "The name of the network, which is made."
  type        = string

  validation {
    condition     = can(regex("^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$", var.network_name))
    error_message = "The network's name must be up to 63 of a-z, 0-9 and -, beginning with a letter and not ending in -."
  }
}

variable "subnet_name" {
  description = "The name of the subnet, which is made."
  type        = string

  validation {
    condition     = can(regex("^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$", var.subnet_name))
    error_message = "The subnet's name must be up to 63 of a-z, 0-9 and -, beginning with a letter and not ending in -."
  }
}

variable "subnet_ip_range" {
  description = "The addresses of the nodes."
  type        = string
  default     = "10.129.0.0/20"

  validation {
    condition     = try(cidrsubnet(var.subnet_ip_range, 0, 0) == var.subnet_ip_range, false)
    error_message = "subnet_ip_range must be the beginning of a range and its length, such as 10.129.0.0/20."
  }
}

variable "pods_ip_range" {
  description = "The addresses of the pods: enough for those of 16 nodes."
  type        = string
  default     = "192.168.64.0/20"

  validation {
    condition     = try(cidrsubnet(var.pods_ip_range, 0, 0) == var.pods_ip_range, false)
    error_message = "pods_ip_range must be the beginning of a range and its length, such as 192.168.64.0/20."
  }
}

variable "services_ip_range" {
  description = "The addresses of Kubernetes' services."
  type        = string
  default     = "192.168.80.0/20"

  validation {
    condition     = try(cidrsubnet(var.services_ip_range, 0, 0) == var.services_ip_range, false)
    error_message = "services_ip_range must be the beginning of a range and its length, such as 192.168.80.0/20."
  }
}

# Cluster.

variable "cluster_name" {
  description = "The name of the cluster."
  type        = string

  validation {
    condition     = can(regex("^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$", var.cluster_name))
    error_message = "The cluster's name must be up to 40 of a-z, 0-9 and -, beginning with a letter and not ending in -."
  }
}

variable "cluster_description" {
  description = "What the console shows of the cluster."
  type        = string
  default     = "GKE cluster for serving models with Triton"
}

variable "gke_release_channel" {
  description = "RAPID, REGULAR, STABLE or EXTENDED. Set it once: the managed mesh does not support another one later."
  type        = string
  default     = "STABLE"

  validation {
    condition     = contains(["RAPID", "REGULAR", "STABLE", "EXTENDED"], var.gke_release_channel)
    error_message = "gke_release_channel is RAPID, REGULAR, STABLE or EXTENDED."
  }
}

variable "asm_release_channel" {
  # [stable: managed automatically, the mesh has the channel of its cluster, and no other]
  description = "The mesh's channel: rapid, regular or stable, as the cluster's. Left out, it follows."
  type        = string
  default     = null

  validation {
    condition     = contains(["rapid", "regular", "stable"], coalesce(var.asm_release_channel, "stable"))
    error_message = "asm_release_channel is rapid, regular or stable, or left out."
  }
}

variable "mesh_feature" {
  # [new: the reference enables it, whatever is there]
  description = "existing: the project's fleet has the feature servicemesh already, and keeps it when the rest goes."
  type        = string
  default     = "new"

  validation {
    condition     = contains(["new", "existing"], var.mesh_feature)
    error_message = "mesh_feature is new, or existing."
  }
}

variable "maintenance_window" {
  # [none: GKE upgrades when it likes, and each upgrade of a GPU node ends what it serves]
  description = "When GKE may upgrade: start and end of a window, and how it recurs (RFC 5545)."
  type        = object({ start_time = string, end_time = string, recurrence = string })
  default = {
    start_time = "2026-01-03T00:00:00Z"
    end_time   = "2026-01-03T12:00:00Z"
    recurrence = "FREQ=WEEKLY;BYDAY=SA,SU"
  }

  validation {
    condition = var.maintenance_window == null || try(
      timecmp(var.maintenance_window.start_time, var.maintenance_window.end_time) < 0, false
    )
    error_message = "maintenance_window must begin before it ends, each as 2026-01-03T00:00:00Z."
  }
}

variable "deletion_protection" {
  description = "true: Terraform refuses to delete the cluster. A sandbox is meant to be taken away by one build."
  type        = bool
  default     = false
  nullable    = false
}
