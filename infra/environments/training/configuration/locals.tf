# What follows from the variables, the infrastructure and the provisioner's settings.

locals {
  infrastructure = data.terraform_remote_state.infrastructure.outputs
  endpoint       = "https://${local.infrastructure.cluster.dns_endpoint}"

  namespaces = toset(concat([var.tpu_namespace], keys(var.teams)))
  weights    = { for name in local.namespaces : name => try(var.teams[name].weight, 1) }

  # By the names of their Google accounts, as the reference has it. There may be no TensorBoard.
  accounts = {
    for address in [local.infrastructure.service_accounts.training, local.infrastructure.service_accounts.tensorboard] :
    split("@", address)[0] => address if address != null
  }
  identities = {
    for pair in setproduct(local.namespaces, keys(local.accounts)) :
    "${pair[0]}/${pair[1]}" => { namespace = pair[0], name = pair[1], address = local.accounts[pair[1]] }
  }
}

# What the provisioner may buy: shared/tpu_slices/wire/settings_form.py has the form of its settings.

locals {
  has_provisioner = try(length(var.provisioner_settings_file), 0) > 0
  settings        = local.has_provisioner ? yamldecode(file(var.provisioner_settings_file)) : null

  # The most chips that the slices of a namespace may have together, and those of all; null: no limit.
  chips_per_namespace = {
    for name in local.namespaces : name => try(coalesce(
      try(local.settings.policy.namespaces[name].chips_per_namespace, null),
      try(local.settings.policy.chips_per_namespace, null)
    ), null)
  }
  chips_per_cluster = try(tonumber(local.settings.policy.chips_per_cluster), null)

  # A sum of what has no limit has none.
  limits = [
    for limit in [local.chips_per_cluster, try(sum(values(local.chips_per_namespace)), null)] : limit if limit != null
  ]
  bought = try(min(local.limits...), 0)
}

# Quotas.

locals {
  # What every pod with chips selects, and what spot's taint keeps others from. Kueue writes the labels of a flavor into
  # the pods' selectors: one of a reservation would take pods away from the hosts that they ask for.
  selected = ["cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology", "cloud.google.com/gke-spot"]

  static = {
    for name, alike in {
      for flavor in values(local.infrastructure.flavors) :
      join("-", compact([flavor.accelerator, flavor.topology, flavor.capacity == "spot" ? "spot" : ""])) => flavor...
      } : name => {
      chips  = sum(alike[*].chips)
      labels = { for key, value in alike[0].node_labels : key => value if contains(local.selected, key) }
      taints = alike[0].node_taints
    }
  }

  # In the order in which Kueue tries them: spot slices before others of their shape, and what stands before what is bought.
  quotas = concat(
    [for name, flavor in local.static : { name = name, chips = flavor.chips } if endswith(name, "-spot")],
    [for name, flavor in local.static : { name = name, chips = flavor.chips } if !endswith(name, "-spot")],
    [{ name = "provisioned", chips = local.bought }]
  )

  # Slices that are bought have all labels, and taints that whoever asks for them tolerates.
  flavors = merge(local.static, {
    provisioned = { labels = {}, taints = [{ key = "google.com/tpu", value = "present", effect = "NoSchedule" }] }
  })
}

# How long pods may take.

locals {
  seconds = {
    for name, default in { create_timeout = "20m", hosts_timeout = "30m" } : name => [
      for written in [trimspace(coalesce(try(local.settings.limits[name], null), default))] :
      tonumber(regex("^[0-9.]+", written)) * { s = 1, m = 60, h = 3600, d = 86400 }[try(regex("[smhd]$", written), "s")]
    ][0]
  }

  # The kinds of capacity that a namespace may have, and those of static slices.
  capacities = flatten([
    values(local.infrastructure.flavors)[*].capacity,
    [
      for name in local.namespaces : coalescelist(
        try([for kind in local.settings.policy.namespaces[name].capacity : kind], []),
        try([for kind in local.settings.policy.capacity : kind], []),
        ["flex_start"]
      ) if local.has_provisioner
    ]
  ])
  waits_for_flex_start = contains([for kind in local.capacities : replace(lower(kind), "-", "_")], "flex_start")

  # GKE tries for 35 minutes to get hosts, then they start. A slice that fails is replaced after these timeouts. Google
  # says of flex-start only how long it runs: who waits for it may wait as long.
  longest_minutes    = 40 + ceil((local.seconds.create_timeout + local.seconds.hosts_timeout) / 60)
  pods_ready_minutes = coalesce(var.pods_ready_timeout, local.waits_for_flex_start ? 7 * 24 * 60 : local.longest_minutes)
}
