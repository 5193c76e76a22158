output "functions" {
  description = "The URL of each function; only its own push identity may call it."
  value = {
    for name, function in google_cloudfunctions2_function.function : name => function.service_config[0].uri
  }
}

output "facts_topics" {
  description = "By cluster id, the topic that its relay publishes to."
  value = {
    for name, row in local.topics : row.cluster => google_pubsub_topic.topic[name].id if row.cluster != ""
  }
}

output "relays" {
  description = "By cluster id, who its relay is to Google Cloud."
  value       = local.relays
}

output "image_repository" {
  description = "Where the relay's image is pushed to; the nodes it runs on must be allowed to read it."
  value       = google_artifact_registry_repository.images.registry_uri
}
