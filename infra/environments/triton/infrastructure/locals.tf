# What follows from the variables. All of it is evaluated without a provider.

locals {
  # Of everything that can have labels.
  labels = { app = "tpu-slice-provisioner", environment = var.cluster_name }

  workload_pool = "${var.project_id}.svc.id.goog"
}

# Which GPUs a machine type has, or can have: https://cloud.google.com/compute/docs/gpus

locals {
  # By accelerator and how many, the most CPUs of an N1 that they can be attached to.
  attached = {
    nvidia-tesla-t4   = { 1 = 48, 2 = 48, 4 = 96 }
    nvidia-tesla-p4   = { 1 = 24, 2 = 48, 4 = 96 }
    nvidia-tesla-p100 = { 1 = 16, 2 = 32, 4 = 96 }
    nvidia-tesla-v100 = { 1 = 12, 2 = 24, 4 = 48, 8 = 96 }
  }

  # The others have theirs built in: by machine type.
  built_in = merge(
    { for cpus, count in { 4 = 1, 8 = 1, 12 = 1, 16 = 1, 24 = 2, 32 = 1, 48 = 4, 96 = 8 } :
    "g2-standard-${cpus}" => { type = "nvidia-l4", count = count } },
    { for cpus, count in { 48 = 1, 96 = 2, 192 = 4, 384 = 8 } :
    "g4-standard-${cpus}" => { type = "nvidia-rtx-pro-6000", count = count } },
    { for count in [1, 2, 4, 8] : "a2-highgpu-${count}g" => { type = "nvidia-tesla-a100", count = count } },
    { for count in [1, 2, 4, 8] : "a2-ultragpu-${count}g" => { type = "nvidia-a100-80gb", count = count } },
    { for count in [1, 2, 4, 8] : "a3-highgpu-${count}g" => { type = "nvidia-h100-80gb", count = count } },
    {
      a2-megagpu-16g = { type = "nvidia-tesla-a100", count = 16 }
      a3-edgegpu-8g  = { type = "nvidia-h100-80gb", count = 8 }
      a3-megagpu-8g  = { type = "nvidia-h100-mega-80gb", count = 8 }
      a3-ultragpu-8g = { type = "nvidia-h200-141gb", count = 8 }
      a4-highgpu-8g  = { type = "nvidia-b200", count = 8 }
    },
  )

  # By how machine types begin, the disks that they can start from.
  disks = {
    n1          = ["pd-standard", "pd-balanced", "pd-ssd"]
    a2          = ["pd-standard", "pd-balanced", "pd-ssd"]
    g2          = ["pd-balanced", "pd-ssd"]
    g4          = ["hyperdisk-balanced"]
    a3-edgegpu  = ["pd-balanced", "pd-ssd"]
    a3-highgpu  = ["pd-balanced", "pd-ssd", "hyperdisk-balanced"]
    a3-megagpu  = ["pd-balanced", "pd-ssd", "hyperdisk-balanced"]
    a3-ultragpu = ["hyperdisk-balanced"]
    a4          = ["hyperdisk-balanced"]
  }

  has_gpus_attached = startswith(var.machine_type, "n1-")
  cpus              = try(tonumber(regex("^n1-(?:[a-z]+-)?([0-9]+)", var.machine_type)[0]), 0)

  # As many CPUs as a machine may have with these GPUs; 0 if there may not be as many of them, or none.
  most_cpus     = try(local.attached[var.accelerator_type][tostring(var.accelerator_count)], 0)
  known_machine = local.has_gpus_attached || contains(keys(local.built_in), var.machine_type)

  # Of a machine type that is not known here, whatever is asked for.
  gpus = lookup(local.built_in, var.machine_type, { type = var.accelerator_type, count = var.accelerator_count })
  possible_disks = one(concat(
    [for series, disks in local.disks : disks if local.known_machine && startswith(var.machine_type, "${series}-")],
    local.known_machine ? [] : [[var.disk_type]],
  ))
}

# Room in the ranges.

locals {
  ranges = [var.subnet_ip_range, var.pods_ip_range, var.services_ip_range]

  # By range, its first address as a number, and how many it has. A range that is none has 0: a validation says so.
  firsts = {
    for range in local.ranges : range => try(sum([
      for index, part in split(".", cidrhost(range, 0)) : tonumber(part) * pow(256, 3 - index)
    ]), 0)
  }
  sizes = { for range in local.ranges : range => try(pow(2, 32 - tonumber(split("/", range)[1])), 0) }

  # At most: GKE adds a CPU node for each that it upgrades. GPU nodes are upgraded in their places.
  nodes = var.default_pool_node_count + 1 + var.triton_node_count

  # GKE gives a node the least power of two that is twice its pods or more.
  addresses_per_node = pow(2, ceil(log(2 * var.max_pods_per_node - 0.5, 2)))
  pod_addresses      = local.nodes * local.addresses_per_node
}
