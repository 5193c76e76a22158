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
  description = "The region of cluster, subnet, bucket and images, such as us-central2."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "The region must be the name of a region, such as us-central2."
  }
}

variable "zone" {
  description = "The zone of the nodes. It must offer the TPUs: catalogue.json has the zones of each accelerator."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+-[a-z0-9]+$", var.zone)) && startswith(var.zone, "${var.region}-")
    error_message = "The zone must be one of ${var.region}, such as ${var.region}-b."
  }
}

variable "more_tpu_zones" {
  description = "Zones that offer an accelerator and that catalogue.json lacks, by its label, such as tpu-v6e-slice."
  type        = map(set(string))
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for label in keys(var.more_tpu_zones) : contains(keys(local.catalogue.accelerators), label)])
    error_message = "more_tpu_zones has zones by accelerator: ${join(", ", keys(local.catalogue.accelerators))}."
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
  # [192.168.64.0/20: some 100 TPU hosts fill it]
  description = "The addresses of the pods: enough for those of 900 TPU hosts."
  type        = string
  default     = "192.168.0.0/17"

  validation {
    condition     = try(cidrsubnet(var.pods_ip_range, 0, 0) == var.pods_ip_range, false)
    error_message = "pods_ip_range must be the beginning of a range and its length, such as 192.168.0.0/17."
  }
}

variable "services_ip_range" {
  # [192.168.80.0/20, which the pods have here]
  description = "The addresses of Kubernetes' services."
  type        = string
  default     = "192.168.128.0/20"

  validation {
    condition     = try(cidrsubnet(var.services_ip_range, 0, 0) == var.services_ip_range, false)
    error_message = "services_ip_range must be the beginning of a range and its length, such as 192.168.128.0/20."
  }
}

variable "network_mtu" {
  description = "The largest packet in bytes. Jumbo frames make transfers between slices and to the bucket faster."
  type        = number
  default     = 8896

  validation {
    condition     = var.network_mtu >= 1300 && var.network_mtu <= 8896
    error_message = "network_mtu is 1300 to 8896."
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
  default     = "GKE cluster for running TPU training workloads"
}

variable "gke_release_channel" {
  # [STABLE: it gets the versions that newer TPUs need months later]
  description = "RAPID, REGULAR, STABLE or EXTENDED."
  type        = string
  default     = "REGULAR"

  validation {
    condition     = contains(["RAPID", "REGULAR", "STABLE", "EXTENDED"], var.gke_release_channel)
    error_message = "gke_release_channel is RAPID, REGULAR, STABLE or EXTENDED."
  }
}

variable "gke_version" {
  # [1.27.3-gke.100, which GKE does not offer any more: a channel's versions go, and it upgrades by itself]
  description = "The least version of the control plane: 1.35, or 1.35.1-gke.100. Default: the channel's."
  type        = string
  default     = null

  validation {
    condition     = var.gke_version == null || can(regex("^1\\.\\d+(\\.\\d+(-gke\\.\\d+)?)?$", var.gke_version))
    error_message = "gke_version must be a version such as 1.35 or 1.35.1-gke.100."
  }
}

variable "maintenance_window" {
  # [none: GKE upgrades when it likes, and each upgrade of TPU nodes ends what runs there]
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
