resource "google_project_service" "api" {
  for_each = toset(concat([
    "artifactregistry.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "container.googleapis.com",
    "dns.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "storage.googleapis.com",
  ], var.enable_tensorboard ? ["aiplatform.googleapis.com"] : []))

  service            = each.key
  disable_on_destroy = false
}
