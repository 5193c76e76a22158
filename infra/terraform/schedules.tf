resource "google_cloud_scheduler_job" "schedule" {
  for_each = local.messaging.schedules

  name      = each.key
  schedule  = each.value.cron
  time_zone = "Etc/UTC"

  pubsub_target {
    topic_name = google_pubsub_topic.topic[each.value.topic].id
    data       = base64encode(each.value.data)
  }

  depends_on = [google_project_service.api]
}
