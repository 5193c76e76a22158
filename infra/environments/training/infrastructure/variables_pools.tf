# The nodes. In brackets: what another default replaces, and why.

variable "cpu_pool_node_count" {
  description = "The nodes of the CPU pool: for Kueue, JobSet, the relay, and what goes with training, such as uploaders."
  type        = number
  default     = 3

  validation {
    condition     = var.cpu_pool_node_count >= 1 && var.cpu_pool_node_count == floor(var.cpu_pool_node_count)
    error_message = "cpu_pool_node_count is 1 or more: Kueue and JobSet need a node."
  }
}

variable "cpu_pool_machine_type" {
  # [n1-standard-4: older, as large, and dearer]
  description = "The machine type of the CPU pool."
  type        = string
  default     = "e2-standard-4"

  validation {
    condition = (
      can(regex("^[a-z][a-z0-9]*-[-a-z0-9]+$", var.cpu_pool_machine_type)) &&
      !contains(keys(local.catalogue.machines), var.cpu_pool_machine_type)
    )
    error_message = "cpu_pool_machine_type must be a machine type without TPUs, such as e2-standard-4."
  }
}

variable "cpu_pool_disk_type" {
  # [pd-standard: images are read from it at every start of a pod]
  description = "The boot disks of the CPU pool."
  type        = string
  default     = "pd-balanced"

  validation {
    condition     = contains(["pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced"], var.cpu_pool_disk_type)
    error_message = "cpu_pool_disk_type is pd-standard, pd-balanced, pd-ssd or hyperdisk-balanced."
  }
}

variable "cpu_pool_disk_size" {
  description = "The size of the boot disks of the CPU pool, in GB."
  type        = number
  default     = 200

  validation {
    condition     = var.cpu_pool_disk_size >= 20
    error_message = "cpu_pool_disk_size is 20 or more, in GB."
  }
}

variable "max_pods_per_node" {
  description = "The most pods of a CPU node."
  type        = number
  default     = 110

  validation {
    condition     = var.max_pods_per_node >= 8 && var.max_pods_per_node <= 256
    error_message = "max_pods_per_node is 8 to 256."
  }
}

# Static TPU slices: a node pool for each. Either all are alike, by the variables up to `multislice_group_name`, or they are
# those of `tpu_pools`.

variable "tpu_type" {
  description = "The slices by name, such as v4-32: catalogue.json has all. Default: v4-16, if nothing else is said."
  type        = string
  default     = null

  validation {
    condition     = var.tpu_type == null || contains(keys(local.catalogue.types), coalesce(var.tpu_type, "-"))
    error_message = "tpu_type: ${coalesce(var.tpu_type, "-")} is none. ${local.known_types}"
  }

  validation {
    condition = var.tpu_type == null || var.tpu_machine_type == null || try(
      local.catalogue.types[var.tpu_type] == { machine_type = var.tpu_machine_type, topology = var.tpu_topology }, true
    )
    error_message = join("", [
      "tpu_type ${coalesce(var.tpu_type, "-")} is ", try(join(" ", values(local.catalogue.types[var.tpu_type])), "-"),
      ", and tpu_machine_type and tpu_topology say otherwise: set one of the two.",
    ])
  }
}

variable "tpu_machine_type" {
  # [ct4p-hightpu-4t, with 2x2x2: what tpu_type v4-16 is]
  description = "The slices by machine type, such as ct4p-hightpu-4t, with tpu_topology: instead of tpu_type."
  type        = string
  default     = null

  validation {
    condition = (
      var.tpu_machine_type == null || contains(keys(local.catalogue.machines), coalesce(var.tpu_machine_type, "-"))
    )
    error_message = "tpu_machine_type is one of ${join(", ", keys(local.catalogue.machines))}."
  }
}

variable "tpu_topology" {
  description = "The slices' topology, such as 2x2x4, with tpu_machine_type."
  type        = string
  default     = null

  validation {
    condition     = (var.tpu_topology == null) == (var.tpu_machine_type == null)
    error_message = "Set both tpu_machine_type and tpu_topology, or neither."
  }

  validation {
    condition = var.tpu_topology == null || try(
      contains(keys(local.catalogue.machines[var.tpu_machine_type].hosts), var.tpu_topology), true
    )
    error_message = join("", [
      "tpu_topology: ${coalesce(var.tpu_machine_type, "-")} has no ${coalesce(var.tpu_topology, "-")}, but ",
      try(local.known_topologies[var.tpu_machine_type], "none"), ".",
    ])
  }
}

variable "tpu_num_nodes" {
  description = "How many hosts a slice has. It follows from the rest: another number is refused."
  type        = number
  default     = null

  validation {
    condition     = var.tpu_num_nodes == null ? true : var.tpu_num_nodes >= 1
    error_message = "tpu_num_nodes is 1 or more, or left out."
  }
}

variable "num_tpu_pools" {
  description = "How many slices. 0 takes away all static ones, also those of tpu_pools, and leaves the rest. Default: 1."
  type        = number
  default     = null

  validation {
    condition = var.num_tpu_pools == null ? true : (
      var.num_tpu_pools >= 0 && var.num_tpu_pools == floor(var.num_tpu_pools)
    )
    error_message = "num_tpu_pools is 0 or more."
  }
}

variable "enable_tpu_autoscaling" {
  description = "true: GKE adds all hosts of a slice when pods wait for it, and removes them when it is idle."
  type        = bool
  default     = false
  nullable    = false
}

variable "tpu_node_pool_name_prefix" {
  description = "How the names of node pools begin; a number from 0 follows."
  type        = string
  default     = "tpu-node-pool"

  validation {
    condition     = can(regex("^[a-z][-a-z0-9]{0,34}$", var.tpu_node_pool_name_prefix))
    error_message = "tpu_node_pool_name_prefix must be up to 35 of a-z, 0-9 and -, beginning with a letter."
  }
}

variable "multislice_group_name" {
  description = "The value of the node label MultisliceGroup, which slices have if there is more than one."
  type        = string
  default     = "multi-slice-group"

  validation {
    condition     = can(regex("^[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$", var.multislice_group_name))
    error_message = "multislice_group_name must be up to 63 letters, digits, -, _ and ., as a value of a node label."
  }
}

variable "tpu_pools" {
  description = "Static slices of several kinds, by how the names of their node pools begin."
  type = map(object({
    type             = optional(string)              # v4-32; or else
    machine_type     = optional(string)              # ct4p-hightpu-4t, and
    topology         = optional(string)              # 2x2x4
    slices           = optional(number, 1)           # node pools
    zone             = optional(string)              # default: var.zone
    capacity         = optional(string, "on_demand") # or spot, reservation, flex_start
    reservation      = optional(string)              # its name, or projects/P/reservations/R
    max_run_duration = optional(string, "604800s")   # of hosts of flex_start: 600s to 604800s
    autoscaling      = optional(bool, false)         # as enable_tpu_autoscaling
    multislice_group = optional(string)              # slices of one group train together
    secondary_disk   = optional(string)              # disk image with container images: projects/P/global/images/I
  }))
  default  = {}
  nullable = false

  validation {
    condition = length(var.tpu_pools) == 0 || (
      var.tpu_type == null && var.tpu_machine_type == null && var.tpu_num_nodes == null &&
      coalesce(var.num_tpu_pools, 0) == 0 && !var.enable_tpu_autoscaling
    )
    error_message = join(" ", [
      "tpu_pools is instead of tpu_type, tpu_machine_type, tpu_topology, tpu_num_nodes, enable_tpu_autoscaling and",
      "num_tpu_pools, which may be 0: leave these out.",
    ])
  }

  validation {
    condition = alltrue([
      for pool in values(var.tpu_pools) :
      (pool.type != null) != (pool.machine_type != null) && (pool.machine_type != null) == (pool.topology != null)
    ])
    error_message = "tpu_pools: each has either a type, or both machine_type and topology."
  }

  validation {
    condition = alltrue([
      for pool in values(var.tpu_pools) : contains(keys(local.catalogue.types), pool.type) if pool.type != null
    ])
    error_message = join(" ", concat(["tpu_pools:"], [
      for name, pool in var.tpu_pools : "${name}: ${pool.type} is no type."
      if pool.type != null && !contains(keys(local.catalogue.types), coalesce(pool.type, "-"))
    ], [local.known_types]))
  }

  validation {
    condition = alltrue([
      for pool in values(var.tpu_pools) : try(
        contains(keys(local.catalogue.machines[pool.machine_type].hosts), pool.topology), false
      ) if pool.machine_type != null && pool.topology != null
    ])
    error_message = join(" ", concat(["tpu_pools:"], [
      for name, pool in var.tpu_pools : try(
        "${name}: ${pool.machine_type} has no ${pool.topology}, but ${local.known_topologies[pool.machine_type]}.",
        "${name}: machine_type is one of ${join(", ", keys(local.catalogue.machines))}."
      ) if pool.machine_type != null && try(local.catalogue.machines[pool.machine_type].hosts[pool.topology], null) == null
    ]))
  }

  validation {
    condition = alltrue([
      for pool in values(var.tpu_pools) : pool.slices >= 0 && pool.slices == floor(pool.slices)
    ])
    error_message = "tpu_pools: slices is 0 or more."
  }

  validation {
    condition = alltrue([
      for pool in values(var.tpu_pools) : contains(["on_demand", "spot", "reservation", "flex_start"], pool.capacity)
    ])
    error_message = "tpu_pools: capacity is on_demand, spot, reservation or flex_start."
  }

  validation {
    condition = alltrue([
      for pool in values(var.tpu_pools) : pool.capacity == "reservation" ? can(regex(join("", [
        "^(projects/[-a-z0-9.:]+/reservations/)?[a-z][-a-z0-9]*",
        "(/reservationBlocks/[-a-z0-9]+(/reservationSubBlocks/[-a-z0-9]+)?)?$",
      ]), pool.reservation)) : pool.reservation == null
    ])
    error_message = "tpu_pools: capacity reservation needs a reservation, by name or as projects/P/reservations/R; others none."
  }

  validation {
    condition = alltrue([
      for pool in values(var.tpu_pools) : pool.capacity == "flex_start" ? (
        try(tonumber(trimsuffix(pool.max_run_duration, "s")), 0) >= 600 &&
        try(tonumber(trimsuffix(pool.max_run_duration, "s")), 0) <= 604800
      ) : true
    ])
    error_message = "tpu_pools: max_run_duration is 600s to 604800s (10 minutes to 7 days)."
  }

  validation {
    condition = alltrue([
      for pool in values(var.tpu_pools) :
      pool.zone == null ? true : can(regex("^${var.region}-[a-z0-9]+$", pool.zone))
    ])
    error_message = "tpu_pools: each zone must be one of ${var.region}: a regional cluster has nodes in its region only."
  }

  validation {
    condition = alltrue([
      for pool in values(var.tpu_pools) :
      can(regex("^[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$", pool.multislice_group)) if pool.multislice_group != null
    ])
    error_message = "tpu_pools: multislice_group must be up to 63 letters, digits, -, _ and ., as a value of a node label."
  }
}

variable "tpu_boot_disk_gb" {
  description = "The size of the boot disks of TPU hosts, in GB. Their type is the catalogue's for the accelerator."
  type        = number
  default     = 100

  validation {
    condition     = var.tpu_boot_disk_gb >= 50
    error_message = "tpu_boot_disk_gb is 50 or more: the image of a training workload is some 20 GB."
  }
}

variable "tpu_max_pods_per_node" {
  description = "The most pods of a TPU host. GKE keeps twice as many addresses for each, so that 110 would take 256."
  type        = number
  default     = 15

  validation {
    condition     = var.tpu_max_pods_per_node >= 8 && var.tpu_max_pods_per_node <= 256
    error_message = "tpu_max_pods_per_node is 8 to 256: GKE's own pods on each node are some 6."
  }
}

variable "provisioned_hosts" {
  description = "How many TPU hosts the provisioner may add beside the static ones: the ranges must have room for them."
  type        = number
  default     = 64

  validation {
    condition     = var.provisioned_hosts >= 0 && var.provisioned_hosts == floor(var.provisioned_hosts)
    error_message = "provisioned_hosts is 0 or more."
  }
}
