resource "google_project_service" "api" {
  for_each = toset([
    "artifactregistry.googleapis.com",
    "cloudbuild.googleapis.com",
    "cloudfunctions.googleapis.com",
    "cloudscheduler.googleapis.com",
    "container.googleapis.com",
    "firestore.googleapis.com",
    "iam.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "pubsub.googleapis.com",
    "run.googleapis.com",
    "storage.googleapis.com",
  ])

  service            = each.key
  disable_on_destroy = false
}

# Google's own accounts, by which these services act in the project. Google creates each at some point after its API is
# enabled; here they are asked for, so that they exist before they are granted something or a function is built. With
# its creation Google grants each its role in the project (https://cloud.google.com/iam/docs/service-agents); destroying
# these resources leaves account and role.
resource "google_project_service_identity" "agent" {
  provider = google-beta
  for_each = toset(["artifactregistry", "cloudbuild", "cloudfunctions", "cloudscheduler", "pubsub", "run"])

  service = google_project_service.api["${each.key}.googleapis.com"].service
}

# A new account is not known to IAM at once: until then, granting it something fails.
resource "time_sleep" "agents" {
  create_duration = "60s"
  triggers        = { for name, agent in google_project_service_identity.agent : name => agent.id }
}

data "google_project" "gke" {
  for_each = local.gke_projects

  project_id = each.key
}
