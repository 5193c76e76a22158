# Values from the files beside this folder, which the local stack reads too. They are evaluated without a provider.

locals {
  messaging = yamldecode(file("${path.module}/../messaging.yaml"))
  firestore = jsondecode(file("${path.module}/../firestore.indexes.json"))

  clusters_folder = "${path.module}/../clusters/${var.project}"

  # By cluster id, which is the name of the file.
  clusters = {
    for file in fileset(local.clusters_folder, "*.yaml") :
    trimsuffix(file, ".yaml") => yamldecode(file("${local.clusters_folder}/${file}"))
  }

  # A path ends with the name that GKE has for the cluster; that of a self-managed one ends before it, with the region or
  # zone of its slices, which are groups of instances on Compute Engine.
  paths = { for id, cluster in local.clusters : id => split("/", cluster.path) }

  # Where each cluster of GKE is. Clusters may be in projects of their own: GKE permissions are granted there, and GKE's log
  # is read there.
  places = {
    for id, parts in local.paths : id => {
      project  = parts[1]
      location = parts[3]
      region   = replace(parts[3], "/-[a-z]$/", "")
      name     = parts[5]
      suffix   = "/${parts[3]}/clusters/${parts[5]}"
    } if length(parts) == 6
  }
  gke_projects = toset(values(local.places)[*].project)

  # By id of each self-managed cluster, the project of its slices: what Compute Engine makes of them is permitted, and
  # logged, there.
  self_managed     = { for id, parts in local.paths : id => parts[1] if length(parts) == 4 }
  compute_projects = toset(values(local.self_managed))

  # Two provisioners are never in one project: topics and database have fixed names. So its id names this one.
  functions_bucket = "${var.project}-tpu-slice-functions"

  # By cluster id, the service account of its TPU nodes; "" if none is set.
  node_service_accounts = {
    for id, cluster in local.clusters : id => try(coalesce(cluster.pools.service_account), "")
  }

  # Other service accounts that `policy` lets pods name for their nodes, patterns among them.
  allowed_service_accounts = distinct(flatten([
    for cluster in local.clusters : [
      try([for email in cluster.policy.service_accounts : email], []),
      try([
        for rules in cluster.policy.namespaces : try([for email in rules.service_accounts : email], [])
      ], []),
    ]
  ]))
  patterns_of_service_accounts = [for email in local.allowed_service_accounts : email if strcontains(email, "*")]

  # A row with {cluster} in its name exists once per cluster; in other rows `cluster` is "".
  copies = { true = keys(local.clusters), false = [""] }

  topics = merge([
    for name in local.messaging.topics : {
      for cluster in local.copies[strcontains(name, "{cluster}")] :
      replace(name, "{cluster}", cluster) => { cluster = cluster }
    }
  ]...)

  subscriptions = merge([
    for name, row in local.messaging.subscriptions : {
      for cluster in local.copies[strcontains(name, "{cluster}")] :
      replace(name, "{cluster}", cluster) => {
        cluster               = cluster
        topic                 = replace(row.topic, "{cluster}", cluster)
        function              = lookup(row, "function", null)
        ack_deadline_seconds  = row.ack_deadline_seconds
        minimum_backoff       = "${row.minimum_backoff_seconds}s"
        maximum_backoff       = "${row.maximum_backoff_seconds}s"
        dead_letter_topic     = lookup(row, "dead_letter_topic", null)
        max_delivery_attempts = lookup(row, "max_delivery_attempts", null)
      }
    }
  ]...)

  schedules = merge([
    for name, row in local.messaging.schedules : {
      for cluster in local.copies[strcontains(name, "{cluster}")] :
      replace(name, "{cluster}", cluster) => {
        cluster = cluster
        topic   = replace(row.topic, "{cluster}", cluster)
        cron    = row.cron
        data    = row.data
      }
    }
  ]...)

  # Pub/Sub waits for a push as long as the subscription's ack deadline, so that is the function's timeout.
  function_timeouts = {
    for name in keys(local.functions) : name => max([
      for row in local.messaging.subscriptions : row.ack_deadline_seconds if lookup(row, "function", null) == name
    ]...)
  }
}
