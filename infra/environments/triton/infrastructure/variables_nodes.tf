# The nodes. In brackets: what another default replaces, and why.

variable "default_pool_node_count" {
  description = "The nodes of the CPU pool: for the ingress gateway, and parts of the mesh and of GKE."
  type        = number
  default     = 3

  validation {
    condition     = var.default_pool_node_count >= 1 && var.default_pool_node_count == floor(var.default_pool_node_count)
    error_message = "default_pool_node_count is 1 or more: the gateway needs a node."
  }
}

variable "default_pool_machine_type" {
  # [e2-medium: GKE's and the mesh's own pods leave it too little for three gateways]
  description = "The machine type of the CPU pool."
  type        = string
  default     = "e2-standard-2"

  validation {
    condition     = can(regex("^[a-z][a-z0-9]*-[-a-z0-9]+$", var.default_pool_machine_type))
    error_message = "default_pool_machine_type must be a machine type, such as e2-standard-2."
  }
}

variable "max_pods_per_node" {
  description = "The most pods of a node."
  type        = number
  default     = 110

  validation {
    condition     = var.max_pods_per_node >= 8 && var.max_pods_per_node <= 256
    error_message = "max_pods_per_node is 8 to 256."
  }
}

# GPUs.

variable "machine_type" {
  description = "The machine type of the GPU pool: one with GPUs built in, or an N1, to which they are attached."
  type        = string
  default     = "n1-standard-4"

  validation {
    condition     = can(regex("^(n1|[ag][0-9]+[a-z]?)-[-a-z0-9]+$", var.machine_type))
    error_message = "machine_type must be one that can have GPUs: n1-standard-4, g2-standard-8, a2-highgpu-1g and the like."
  }
}

variable "accelerator_type" {
  description = "The GPU's type. With a machine type that has GPUs built in, it must be theirs."
  type        = string
  default     = "nvidia-tesla-t4"

  validation {
    condition = (
      can(regex("^nvidia-[a-z0-9]+(-[a-z0-9]+)*$", var.accelerator_type)) && !endswith(var.accelerator_type, "-vws")
    )
    error_message = "accelerator_type must be a GPU, such as nvidia-tesla-t4 or nvidia-l4, and not one for workstations (-vws)."
  }
}

variable "accelerator_count" {
  description = "How many GPUs a node has. With a machine type that has GPUs built in, it must be as many."
  type        = number
  default     = 1

  validation {
    condition     = contains([1, 2, 4, 8, 16], var.accelerator_count)
    error_message = "accelerator_count is 1, 2, 4, 8 or 16."
  }
}

variable "gpu_driver_version" {
  # [a DaemonSet from the newest state of somebody's repository]
  description = "LATEST or DEFAULT of GKE's version. Triton's current images need R580, which the default may not be yet."
  type        = string
  default     = "LATEST"

  validation {
    condition     = contains(["DEFAULT", "LATEST"], var.gpu_driver_version)
    error_message = "gpu_driver_version is LATEST or DEFAULT: without a driver, no pod gets a GPU."
  }
}

variable "triton_node_count" {
  # [1, always there: a canary needs a GPU of its own, and a node that nothing asks for is paid for]
  description = "The most GPU nodes. GKE adds one when a pod waits for a GPU."
  type        = number
  default     = 2

  validation {
    condition     = var.triton_node_count >= 1 && var.triton_node_count == floor(var.triton_node_count)
    error_message = "triton_node_count is 1 or more."
  }
}

variable "triton_min_node_count" {
  description = "GPU nodes that stay when nothing asks for them."
  type        = number
  default     = 0

  validation {
    condition     = var.triton_min_node_count >= 0 && var.triton_min_node_count == floor(var.triton_min_node_count)
    error_message = "triton_min_node_count is 0 or more."
  }

  validation {
    condition     = var.triton_min_node_count <= var.triton_node_count
    error_message = "triton_min_node_count is triton_node_count at most."
  }
}

variable "triton_spot" {
  description = "true: GPU nodes are spot, which are cheaper, and which Google may take back within half a minute."
  type        = bool
  default     = false
  nullable    = false
}

variable "disk_type" {
  # [pd-standard: Triton's image of many GB is read from it at every start, and newer GPUs do not start from it]
  description = "The boot disks of GPU nodes, which also have the models that are served."
  type        = string
  default     = "pd-balanced"

  validation {
    condition     = contains(["pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced"], var.disk_type)
    error_message = "disk_type is pd-standard, pd-balanced, pd-ssd or hyperdisk-balanced."
  }
}

variable "disk_size_gb" {
  # [500: as dear as 200 GB of pd-balanced, and slower]
  description = "The size of the boot disks of GPU nodes, in GB: for GKE, Triton's image, and each replica's models."
  type        = number
  default     = 200

  validation {
    condition     = var.disk_size_gb >= 100
    error_message = "disk_size_gb is 100 or more, in GB: less has no room for models."
  }
}
