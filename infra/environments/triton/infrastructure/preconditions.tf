# What no variable can say alone. All of it is told before anything is planned.

resource "terraform_data" "request" {
  input = local.gpus

  lifecycle {
    precondition {
      condition = !local.has_gpus_attached || local.most_cpus > 0
      error_message = join(" ", concat(["accelerator_type, accelerator_count: an N1 can have"], [
        join("; ", [for type, counts in local.attached : "${join(", ", keys(counts))} of ${type}"])
      ]))
    }

    precondition {
      condition = !local.has_gpus_attached || local.most_cpus == 0 || local.cpus <= local.most_cpus
      error_message = join(" ", [
        "machine_type: with ${var.accelerator_count} of ${var.accelerator_type}, an N1 has up to ${local.most_cpus} CPUs."
      ])
    }

    precondition {
      condition     = local.gpus.type == var.accelerator_type && local.gpus.count == var.accelerator_count
      error_message = "${var.machine_type} has ${local.gpus.count} of ${local.gpus.type}: say so, or take another."
    }

    precondition {
      condition     = contains(local.possible_disks, var.disk_type)
      error_message = "disk_type: ${var.machine_type} starts from ${join(" or ", local.possible_disks)}."
    }

    precondition {
      condition = upper(coalesce(var.asm_release_channel, var.gke_release_channel)) == var.gke_release_channel
      error_message = join(" ", [
        "asm_release_channel: leave it out. The managed mesh follows the cluster, which is in ${var.gke_release_channel}."
      ])
    }

    # Google keeps four addresses of each range to itself.
    precondition {
      condition = local.sizes[var.subnet_ip_range] >= local.nodes + 4
      error_message = join(" ", [
        "subnet_ip_range must have ${local.nodes + 4} addresses or more: one for each of ${local.nodes} nodes, and 4."
      ])
    }

    precondition {
      condition = local.sizes[var.pods_ip_range] >= local.pod_addresses
      error_message = join(" ", [
        "pods_ip_range must be a /${32 - ceil(log(local.pod_addresses - 0.5, 2))} or larger:",
        "each of ${local.nodes} nodes takes ${local.addresses_per_node} addresses.",
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
