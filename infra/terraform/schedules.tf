resource "google_cloud_scheduler_job" "schedule" {
  for_each = local.schedules

  name      = each.key
  schedule  = each.value.cron
  time_zone = "Etc/UTC"

  pubsub_target {
    topic_name = google_pubsub_topic.topic[each.value.topic].id
    data       = base64encode(each.value.data)
  }

  depends_on = [google_pubsub_topic_iam_member.schedule]
}

# Cloud Scheduler's role in the project allows it to publish anywhere; this does not rest on that.
resource "google_pubsub_topic_iam_member" "schedule" {
  for_each = toset(values(local.schedules)[*].topic)

  topic  = google_pubsub_topic.topic[each.key].id
  role   = "roles/pubsub.publisher"
  member = google_project_service_identity.agent["cloudscheduler"].member

  depends_on = [time_sleep.agents]
}
