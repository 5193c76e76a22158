# The topics and subscriptions of ../messaging.yaml.

resource "google_pubsub_topic" "topic" {
  for_each = local.topics

  name = each.key

  depends_on = [google_project_service.api]
}

resource "google_pubsub_subscription" "subscription" {
  for_each = local.subscriptions

  name                 = each.key
  topic                = google_pubsub_topic.topic[each.value.topic].id
  ack_deadline_seconds = each.value.ack_deadline_seconds

  retry_policy {
    minimum_backoff = each.value.minimum_backoff
    maximum_backoff = each.value.maximum_backoff
  }

  # Never expires: by default, a subscription without activity for 31 days is deleted.
  expiration_policy {
    ttl = ""
  }

  # functions-framework reads the topic's full name from the path.
  dynamic "push_config" {
    for_each = each.value.function[*]

    content {
      push_endpoint = join("/", [
        google_cloudfunctions2_function.function[push_config.value].service_config[0].uri,
        google_pubsub_topic.topic[each.value.topic].id,
      ])

      # By default the audience is the whole endpoint, path included; Cloud Run expects the service's URL.
      oidc_token {
        service_account_email = google_service_account.push[push_config.value].email
        audience              = google_cloudfunctions2_function.function[push_config.value].service_config[0].uri
      }
    }
  }

  dynamic "dead_letter_policy" {
    for_each = each.value.dead_letter_topic[*]

    content {
      dead_letter_topic     = google_pubsub_topic.topic[dead_letter_policy.value].id
      max_delivery_attempts = each.value.max_delivery_attempts
    }
  }

  depends_on = [google_cloud_run_v2_service_iam_member.push]
}
