# Three accounts, each with the least that its part needs. No part may act as another, and none is the project's default.

resource "google_service_account" "nodes" {
  account_id   = var.gke_sa_name
  display_name = "Nodes of ${var.cluster_name}"

  depends_on = [google_project_service.api]
}

resource "google_project_iam_member" "nodes" {
  for_each = var.gke_sa_roles

  project = var.project_id
  role    = each.key
  member  = google_service_account.nodes.member
}

# The nodes pull the images.
resource "google_artifact_registry_repository_iam_member" "nodes" {
  repository = google_artifact_registry_repository.images.name
  location   = google_artifact_registry_repository.images.location
  role       = "roles/artifactregistry.reader"
  member     = google_service_account.nodes.member
}

resource "google_service_account" "training" {
  account_id   = var.tpu_sa_name
  display_name = "Training workloads of ${var.cluster_name}"

  depends_on = [google_project_service.api]
}

resource "google_project_iam_member" "training" {
  for_each = var.tpu_sa_roles

  project = var.project_id
  role    = each.key
  member  = google_service_account.training.member
}

# Vertex AI has no role for writing to one TensorBoard. A custom role would be narrower, and its id could not be had again
# for weeks after each removal. So uploaders have an account of their own, which reads the bucket and changes nothing in it.
resource "google_service_account" "tensorboard" {
  for_each = local.tensorboard

  account_id   = var.tensorboard_sa_name
  display_name = "TensorBoard's uploaders of ${var.cluster_name}"

  depends_on = [google_project_service.api]
}

resource "google_project_iam_member" "tensorboard" {
  for_each = local.tensorboard

  project = var.project_id
  role    = "roles/aiplatform.user"
  member  = google_service_account.tensorboard[each.key].member
}

locals {
  # legacyBucketReader: clients ask for the bucket itself before they ask for objects.
  bucket_roles = merge(
    { training = ["roles/storage.objectUser", "roles/storage.legacyBucketReader"] },
    var.nodes_use_bucket ? { nodes = ["roles/storage.objectUser", "roles/storage.legacyBucketReader"] } : {},
    var.enable_tensorboard ? { tensorboard = ["roles/storage.objectViewer", "roles/storage.legacyBucketReader"] } : {},
  )

  bucket_members = merge([
    for account, roles in local.bucket_roles : { for role in roles : "${account}/${basename(role)}" => account }
  ]...)
}

resource "google_storage_bucket_iam_member" "user" {
  for_each = local.bucket_members

  bucket = google_storage_bucket.artifacts.name
  role   = "roles/${basename(each.key)}"
  member = {
    nodes       = google_service_account.nodes.member
    training    = google_service_account.training.member
    tensorboard = one(values(google_service_account.tensorboard)[*].member)
  }[each.value]
}
