# What follows from the variables and from the catalogue. All of it is evaluated without a provider.

locals {
  # Made by `python -m infra.environments.training.catalogue` from the catalogue that the provisioner itself uses.
  catalogue = jsondecode(file("${path.module}/catalogue.json"))

  known_types = "Types are named as v4-32, v5litepod-256, v5p-128, v6e-64 and tpu7x-128: catalogue.json has all."
  known_topologies = {
    for name, machine in local.catalogue.machines : name => join(", ", slice(
      [for hosts in sort([for topology, hosts in machine.hosts : format("%06d %s", hosts, topology)]) : split(" ", hosts)[1]],
      0, min(8, length(machine.hosts))
    ))
  }

  # By the label of an accelerator.
  zones = {
    for label, kind in local.catalogue.accelerators :
    label => distinct(concat(kind.zones, tolist(lookup(var.more_tpu_zones, label, []))))
  }

  # Of everything that can have labels.
  labels = { app = "tpu-slice-provisioner", environment = var.cluster_name }
}

# Static slices.

locals {
  # The pools of `tpu_pools`, else one by the other variables.
  requested_pools = merge(var.tpu_pools, {
    for name in length(var.tpu_pools) == 0 ? [var.tpu_node_pool_name_prefix] : [] : name => {
      type             = var.tpu_machine_type != null ? null : coalesce(var.tpu_type, "v4-16")
      machine_type     = var.tpu_machine_type
      topology         = var.tpu_topology
      slices           = coalesce(var.num_tpu_pools, 1)
      zone             = null
      capacity         = "on_demand"
      reservation      = null
      max_run_duration = null
      autoscaling      = var.enable_tpu_autoscaling
      multislice_group = coalesce(var.num_tpu_pools, 1) > 1 ? var.multislice_group_name : null
      secondary_disk   = null
    }
  })

  # By pool, its machine type and topology; null if its type is none.
  shapes = {
    for name, pool in local.requested_pools : name => pool.type == null ? {
      machine_type = pool.machine_type, topology = pool.topology
    } : lookup(local.catalogue.types, pool.type, null)
  }

  # By pool, what the catalogue has of it. One that it has not is left out: a validation says so.
  known_pools = {
    for name, shape in local.shapes : name => {
      hosts   = local.catalogue.machines[shape.machine_type].hosts[shape.topology]
      machine = local.catalogue.machines[shape.machine_type]
      kind    = local.catalogue.accelerators[local.catalogue.machines[shape.machine_type].accelerator]
    } if can(local.catalogue.machines[shape.machine_type].hosts[shape.topology])
  }

  pools = {
    for name, known in local.known_pools : name => merge(local.requested_pools[name], local.shapes[name], {
      zone               = coalesce(local.requested_pools[name].zone, var.zone)
      accelerator        = known.machine.accelerator
      chips_per_host     = known.machine.chips
      hosts              = known.hosts
      boot_disk          = known.kind.boot_disk
      flex_start_offered = known.kind.flex_start
      minimum_gke        = known.kind.minimum_gke
      placement          = known.hosts == 1 ? "" : known.kind.placement # GKE refuses one for a single host
      # Flex-start pools are empty until GKE's autoscaler adds all hosts at once.
      scaled = local.requested_pools[name].autoscaling || local.requested_pools[name].capacity == "flex_start"
    }) if var.num_tpu_pools != 0
  }

  # A slice is a node pool: by its name.
  slices = merge([
    for name, pool in local.pools : {
      for index in range(max(0, floor(pool.slices))) : "${name}-${index}" => merge(pool, { pool = name })
    }
  ]...)

  # Slices that train together.
  groups = {
    for name in distinct(compact(values(local.slices)[*].multislice_group)) : name => {
      slices = length([for slice in values(local.slices) : slice if slice.multislice_group == name])
      shapes = distinct([
        for slice in values(local.slices) : "${slice.machine_type} ${slice.topology}" if slice.multislice_group == name
      ])
    }
  }

  # Slices of one flavor are alike to Kueue: as many chips, in hosts with the same labels and taints.
  flavors = {
    for key, alike in {
      for slice in values(local.slices) : join("-", compact([
        slice.machine_type, slice.topology, slice.capacity == "on_demand" ? "" : replace(slice.capacity, "_", "-"),
        local.reservations[slice.pool].key,
      ])) => slice...
      } : key => {
      accelerator    = alike[0].accelerator
      topology       = alike[0].topology
      machine_type   = alike[0].machine_type
      capacity       = alike[0].capacity
      hosts          = alike[0].hosts
      chips_per_host = alike[0].chips_per_host
      slices         = length(alike)
      chips          = length(alike) * alike[0].hosts * alike[0].chips_per_host
      node_labels = merge(
        {
          "cloud.google.com/gke-tpu-accelerator"   = alike[0].accelerator
          "cloud.google.com/gke-tpu-topology"      = alike[0].topology
          "cloud.google.com/gke-accelerator-count" = tostring(alike[0].chips_per_host)
        },
        alike[0].capacity == "spot" ? { "cloud.google.com/gke-spot" = "true" } : {},
        alike[0].capacity == "flex_start" ? { "cloud.google.com/gke-flex-start" = "true" } : {},
        alike[0].capacity == "reservation" ? { "cloud.google.com/reservation-name" = local.reservations[alike[0].pool].name } : {},
      )
      node_taints = concat(
        [{ key = "google.com/tpu", value = "present", effect = "NoSchedule" }], # GKE's own
        alike[0].capacity == "spot" ? [{ key = "cloud.google.com/gke-spot", value = "true", effect = "NoSchedule" }] : [],
      )
    }
  }

  # projects/P/reservations/R/reservationBlocks/B is of R, and other hosts than those of R's block C.
  reservations = {
    for name, parts in {
      for name, pool in local.pools :
      name => split("/", replace(coalesce(pool.reservation, "none"), "/^projects/[^/]+/reservations//", ""))
      } : name => {
      name = parts[0]
      key  = parts[0] == "none" ? "" : join("-", [for index, part in parts : part if index % 2 == 0])
    }
  }

  # The topologies for which slices of several hosts need a workload policy.
  workload_policies = {
    for topology in distinct([
      for slice in values(local.slices) : slice.topology if slice.placement == "WORKLOAD_POLICY"
    ]) : topology => "${var.cluster_name}-${topology}"
  }
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

  # At most: GKE adds a CPU node for each that it upgrades. TPU hosts are upgraded in their places.
  nodes = {
    cpu = var.cpu_pool_node_count + 1
    tpu = sum(concat([var.provisioned_hosts], values(local.slices)[*].hosts))
  }

  # GKE gives a node the least power of two that is twice its pods or more.
  addresses_per_node = {
    cpu = pow(2, ceil(log(2 * var.max_pods_per_node - 0.5, 2)))
    tpu = pow(2, ceil(log(2 * var.tpu_max_pods_per_node - 0.5, 2)))
  }
  pod_addresses = sum([for kind, nodes in local.nodes : nodes * local.addresses_per_node[kind]])
}

# Versions of GKE as numbers, to compare them. One that leaves out its end is the newest that begins so.

locals {
  versions = {
    for version in distinct(compact(concat([var.gke_version], values(local.pools)[*].minimum_gke))) :
    version => try(sum([
      for index, part in slice(concat(regexall("\\d+", version), ["999", "9999999"]), 1, 4) :
      tonumber(part) * pow(10, [10, 7, 0][index])
    ]), 0)
  }
}
