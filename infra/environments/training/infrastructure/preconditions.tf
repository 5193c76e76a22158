# What no variable can say alone. All of it is told before anything is planned.

resource "terraform_data" "request" {
  input = local.flavors

  lifecycle {
    precondition {
      condition = alltrue([for pool in values(local.pools) : contains(local.zones[pool.accelerator], pool.zone)])
      error_message = join(" ", concat(["The zone must offer the TPUs."], [
        for name, pool in local.pools :
        "${name}: ${pool.accelerator} is in ${join(", ", local.zones[pool.accelerator])}, not in ${pool.zone}."
        if !contains(local.zones[pool.accelerator], pool.zone)
        ], [
        "If Google offers it there by now, say so in more_tpu_zones."
      ]))
    }

    precondition {
      condition = alltrue([for pool in values(local.pools) : pool.hosts == coalesce(var.tpu_num_nodes, pool.hosts)])
      error_message = join(" ", concat(["tpu_num_nodes: leave it out."], [
        for name, pool in local.pools : "A slice of ${name} has ${pool.hosts} hosts."
      ]))
    }

    precondition {
      condition = alltrue([
        for pool in values(local.pools) : pool.flex_start_offered if pool.capacity == "flex_start"
      ])
      error_message = join(" ", concat(["capacity:"], [
        for name, pool in local.pools : "${name}: GKE has no flex-start for ${pool.accelerator}."
        if pool.capacity == "flex_start" && !pool.flex_start_offered
      ]))
    }

    # The log sink and the relay of the provisioner know its own pools by such names.
    precondition {
      condition = alltrue([
        for name in keys(local.slices) :
        length(name) <= 40 && can(regex("^[a-z][-a-z0-9]*$", name)) && !can(regex("^tpu-.*-[a-z2-7]{13}-[1-9]\\d*$", name))
      ])
      error_message = join(" ", [
        "The names of tpu_pools, with a number, must be up to 40 of a-z, 0-9 and -, begin with a letter,",
        "and not be the provisioner's (tpu-NAME-13 CHARACTERS-NUMBER).",
      ])
    }

    precondition {
      condition = alltrue([for group in values(local.groups) : length(group.shapes) == 1])
      error_message = join(" ", concat(["The slices of a multislice group must be alike."], [
        for name, group in local.groups : "${name} has ${join(" and ", group.shapes)}." if length(group.shapes) > 1
      ]))
    }

    precondition {
      condition = alltrue([
        for pool in values(local.pools) : local.versions[var.gke_version] >= local.versions[pool.minimum_gke]
        if var.gke_version != null && pool.minimum_gke != null
      ])
      error_message = join(" ", concat(["gke_version must support the TPUs."], [
        for pool in values(local.pools) : "${pool.accelerator} needs ${pool.minimum_gke}." if pool.minimum_gke != null
      ]))
    }

    # Google keeps four addresses of each range to itself.
    precondition {
      condition = local.sizes[var.subnet_ip_range] >= sum(values(local.nodes)) + 4
      error_message = join(" ", [
        "subnet_ip_range must have ${sum(values(local.nodes)) + 4} addresses or more: one for each of",
        "${local.nodes.cpu} CPU nodes and ${local.nodes.tpu} TPU hosts, and 4.",
      ])
    }

    precondition {
      condition = local.sizes[var.pods_ip_range] >= local.pod_addresses
      error_message = join(" ", [
        "pods_ip_range must be a /${32 - ceil(log(local.pod_addresses - 0.5, 2))} or larger: each of ${local.nodes.cpu} CPU",
        "nodes takes ${local.addresses_per_node.cpu} addresses, each of ${local.nodes.tpu} TPU hosts",
        "${local.addresses_per_node.tpu}. Of these hosts, the provisioner may add ${var.provisioned_hosts}.",
      ])
    }

    precondition {
      condition = alltrue([
        for pair in [[0, 1], [0, 2], [1, 2]] :
        local.firsts[local.ranges[pair[0]]] >= local.firsts[local.ranges[pair[1]]] + local.sizes[local.ranges[pair[1]]] ||
        local.firsts[local.ranges[pair[1]]] >= local.firsts[local.ranges[pair[0]]] + local.sizes[local.ranges[pair[0]]]
      ])
      error_message = "The ranges of nodes, pods and services must not overlap: ${join(", ", local.ranges)}."
    }
  }
}
