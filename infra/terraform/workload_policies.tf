# Workload policies: what a slice of tpu7x with several hosts needs in its project and region. (In a self-managed cluster
# each slice is made with one of its own.) A cluster's settings name them by a pattern (pools.workload_policy:
# tpu-provisioner-{topology}), which does not say for which topologies; those that `policy.workload_policies` names in full
# are made:
#
#   policy:
#     workload_policies: [tpu-provisioner-2x2x2, tpu-provisioner-4x4x4]
#
# A name is made if one part of it, between hyphens, is the topology of several hosts. Others must be made by hand. One
# that exists already, since xpk or another provisioner made it, is left alone if `existing_workload_policies` names it.

locals {
  # By cluster id, every name in its settings that has no placeholder.
  workload_policy_names = {
    for id, cluster in local.clusters : id => distinct(flatten([
      try([for name in [cluster.pools.workload_policy] : name if !strcontains(name, "{")], []),
      try([for name in cluster.policy.workload_policies : name], []),
      try([for rules in values(cluster.policy.namespaces) : try([for name in rules.workload_policies : name], [])], []),
    ])) if contains(keys(local.places), id)
  }

  # By name, its one topology, or "".
  workload_policy_topologies = {
    for name in distinct(flatten(values(local.workload_policy_names))) : name => try(coalesce(one(
      [for part in split("-", name) : part if can(regex("^[1-9]\\d*x[1-9]\\d*x[1-9]\\d*$", part))]
    )), "")
  }

  # By name, how many chips that is; up to 4 are one host, which needs no policy. 0 if the name has no topology.
  workload_policy_chips = {
    for name, topology in local.workload_policy_topologies : name => try(
      tonumber(split("x", topology)[0]) * tonumber(split("x", topology)[1]) * tonumber(split("x", topology)[2]), 0
    )
  }

  workload_policies = merge([
    for id, names in local.workload_policy_names : {
      for name in names : "${local.places[id].project}/${local.places[id].region}/${name}" => {
        name     = name
        project  = local.places[id].project
        region   = local.places[id].region
        topology = local.workload_policy_topologies[name]
      }
      if local.workload_policy_chips[name] > 4 && !contains(var.existing_workload_policies, name)
    }
  ]...)

  unmade_workload_policies = [
    for name, chips in local.workload_policy_chips : name
    if chips <= 4 && !contains(var.existing_workload_policies, name)
  ]
}

resource "google_compute_resource_policy" "workload" {
  for_each = local.workload_policies

  project     = each.value.project
  region      = each.value.region
  name        = each.value.name
  description = "Made by the TPU slice provisioner of ${var.project}"

  workload_policy {
    type                 = "HIGH_THROUGHPUT"
    accelerator_topology = each.value.topology
  }
}

check "workload_policies" {
  assert {
    condition     = length(local.unmade_workload_policies) == 0
    error_message = <<-EOT
      These workload policies are not made here, as their names do not tell one topology of several hosts:
      ${join(", ", local.unmade_workload_policies)}. Make them by hand, in the project and region of each cluster that
      names them, and name them in existing_workload_policies.
    EOT
  }
}
