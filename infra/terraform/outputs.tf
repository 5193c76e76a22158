output "functions" {
  description = "The URL of each function; only its own push service account may call it."
  value = {
    for name, function in google_cloudfunctions2_function.function : name => function.service_config[0].uri
  }
}

output "facts_topics" {
  description = "The topic that each cluster's relay publishes to, by cluster id."
  value = {
    for id in keys(local.clusters) : id => google_pubsub_topic.topic["facts-${id}"].id
  }
}

output "relays" {
  description = "The IAM principal of each cluster's relay, by cluster id."
  value       = local.relays
}

output "image_repository" {
  description = "The repository of the relay's image; the nodes that it runs on must be allowed to read it."
  value       = google_artifact_registry_repository.images.registry_uri
}
