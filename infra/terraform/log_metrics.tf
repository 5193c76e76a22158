# Metrics to alert on: how often the functions log each event that asks for somebody. docs/log-events.md has the
# alerting policies, and the events of the relay, which are in the projects of its clusters.

locals {
  # With severity ERROR, and `sweep.completed`, whose absence asks for somebody.
  counted_events = toset([
    "document.unreadable",
    "message.failed",
    "message.rejected",
    "orphans.deferred",
    "relay.silent",
    "releases.stopped",
    "settings.missing",
    "settings.unreadable",
    "sweep.completed",
    "sweep.failed",
  ])
}

resource "google_logging_metric" "event" {
  for_each = local.counted_events

  name        = "tpu-slices/${each.key}"
  description = "How often the functions of the TPU slice provisioner logged ${each.key}"

  filter = <<-EOT
    resource.type="cloud_run_revision"
    AND resource.labels.service_name=~"^tpu-slice-(${join("|", keys(local.functions))})$"
    AND jsonPayload.event="${each.key}"
  EOT

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"
    unit        = "1"

    labels {
      key         = "cluster"
      value_type  = "STRING"
      description = "The cluster that the line names; empty if it names none"
    }
  }

  label_extractors = {
    cluster = "EXTRACT(jsonPayload.cluster)"
  }

  depends_on = [google_project_service.api]
}
