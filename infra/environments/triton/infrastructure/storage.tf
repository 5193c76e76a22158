# The models, in the region of the GPUs.
resource "google_storage_bucket" "models" {
  name                        = var.repository_bucket_name
  location                    = var.region
  storage_class               = "STANDARD" # in a region, what was called REGIONAL
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = var.force_destroy

  # Parts of uploads that were broken off. They are paid for, and no list shows them.
  lifecycle_rule {
    action {
      type = "AbortIncompleteMultipartUpload"
    }

    condition {
      age = 7
    }
  }

  soft_delete_policy {
    retention_duration_seconds = var.deleted_objects_kept_days * 24 * 60 * 60
  }

  depends_on = [google_project_service.api]
}

# Images that are pinned or built for serving.
resource "google_artifact_registry_repository" "images" {
  repository_id = var.artifact_registry_name
  location      = coalesce(var.artifact_registry_location, var.region)
  format        = "DOCKER"
  description   = "Serving images of ${var.cluster_name}"

  docker_config {
    immutable_tags = true # a tag names one image: what served can be had again
  }

  depends_on = [google_project_service.api]
}
