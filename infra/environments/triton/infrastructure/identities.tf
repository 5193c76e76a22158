# Two accounts, each with the least that its part needs. None is the project's default.

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

resource "google_service_account" "triton" {
  account_id   = var.triton_sa_name
  display_name = "Triton of ${var.cluster_name}"

  depends_on = [google_project_service.api]
}

resource "google_project_iam_member" "triton" {
  for_each = var.triton_sa_roles

  project = var.project_id
  role    = each.key
  member  = google_service_account.triton.member
}

# legacyBucketReader: Triton asks for the bucket itself before it asks for objects
# (triton-inference-server/core, src/filesystem/implementations/gcs.h: IsDirectory).
resource "google_storage_bucket_iam_member" "triton" {
  for_each = toset(["roles/storage.objectViewer", "roles/storage.legacyBucketReader"])

  bucket = google_storage_bucket.models.name
  role   = each.key
  member = google_service_account.triton.member
}

# Triton's ServiceAccount in Kubernetes has the same name. The pool of identities is there once the project has a cluster
# that has one.
resource "google_service_account_iam_member" "triton" {
  service_account_id = google_service_account.triton.name
  role               = "roles/iam.workloadIdentityUser"
  member             = "serviceAccount:${local.workload_pool}[${var.triton_namespace}/${var.triton_sa_name}]"

  depends_on = [google_container_cluster.cluster]
}
