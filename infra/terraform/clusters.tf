# Who drops a cluster's file takes away its topic, and the right to delete its node pools: those that stand would run, and
# cost, for ever. So a plan that drops a cluster fails while GKE has pools of ours in it (`lifecycle` in firestore.tf).
# That needs no records: each apply notes in the functions' bucket what it serves, in objects `clusters/ID/PATH`, and a
# cluster that was noted and has no file any more, or another path, is looked up in GKE. So are all, if `destroy` is yes.
#
# No data source lists the instance groups of a project. Of self-managed clusters the records alone tell: the build asks
# them before it plans (`python -m infra.preflight dropped`), and passes only a cluster that `slices retire` has emptied.

locals {
  noted = toset([for id, cluster in local.clusters : "clusters/${id}/${cluster.path}"])
}

resource "google_storage_bucket_object" "cluster" {
  for_each = local.noted

  name    = each.key
  bucket  = google_storage_bucket.functions.name
  content = "Served by the TPU slice provisioner of ${var.project}."
}

# Nothing before the first apply: the objects of a bucket that does not exist cannot be listed.
data "google_storage_buckets" "functions" {
  project = var.project
  prefix  = local.functions_bucket
}

data "google_storage_bucket_objects" "noted" {
  for_each = toset([
    for bucket in data.google_storage_buckets.functions.buckets : bucket.name if bucket.name == local.functions_bucket
  ])

  bucket = each.key
  prefix = "clusters/"
}

locals {
  noted_before = toset(flatten([
    for listed in data.google_storage_bucket_objects.noted : listed.bucket_objects[*].name
  ]))
}

locals {
  # By the name of its note. One that was deleted in GKE cannot be looked up: the plan fails until `deleted_clusters` has
  # its id.
  dropped = {
    for note in setsubtract(local.noted_before, var.destroy == "yes" ? [] : local.noted) :
    note => zipmap(["project", "location", "name"], [for part in [3, 5, 7] : split("/", note)[part]])
    if length(split("/", note)) == 8 && !contains(var.deleted_clusters, split("/", note)[1])
  }
}

data "google_container_cluster" "dropped" {
  for_each = local.dropped

  project  = each.value.project
  location = each.value.location
  name     = each.value.name
}

locals {
  # By the name of its note, the labels of each of its pools.
  dropped_pools = {
    for note, cluster in data.google_container_cluster.dropped : note => {
      for pool in cluster.node_pool : pool.name => merge(pool.node_config[*].labels...)
    }
  }
}

locals {
  # By the cluster's full name, the pools that are ours. Those that were adopted lack the label: nothing is known of them.
  stranded = {
    for note, pools in local.dropped_pools :
    join("/", slice(split("/", note), 2, 8)) => [
      for name, labels in pools : name if contains(keys(labels), "google.com/tpu-slice-id")
    ]
  }
}
