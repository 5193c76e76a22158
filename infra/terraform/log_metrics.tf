# Metrics of the functions' log lines: how often each event is logged that alerts.tf or the dashboard names, and the
# numbers that some lines carry. shared/tpu_slices/ports/log_events.py has the lists; tests/infra compares them.

locals {
  # With severity ERROR, and two whose absence asks for somebody.
  counted_events = toset([
    "clusters.searched",
    "document.unreadable",
    "hosts.late",
    "message.failed",
    "message.rejected",
    "notification.failed",
    "orphans.deferred",
    "pods.refused",
    "pools.unproven",
    "relay.silent",
    "releases.stopped",
    "settings.missing",
    "settings.unreadable",
    "sweep.completed",
    "sweep.failed",
  ])

  measured_numbers = {
    "cluster.counted" = [
      "queued",
      "provisioning",
      "waiting",
      "ready",
      "releasing",
      "refused",
      "blocked",
      "on_hold",
      "warm",
      "spares",
      "chips_bought",
      "chips_held",
      "chips_idle",
      "idle_percent",
      "releasing_seconds",
      "held_seconds",
      "paid_seconds",
    ]
    "inventory.checked" = ["orphans", "ownerless"]
    "slice.decided"     = ["ready_seconds"]
  }

  measured = merge([
    for event, numbers in local.measured_numbers : {
      for number in numbers : "${event}/${number}" => { event = event, number = number }
    }
  ]...)

  functions_lines = join(" AND ", [
    "resource.type=\"cloud_run_revision\"",
    "resource.labels.service_name=~\"^tpu-slice-(${join("|", keys(local.functions))})$\"",
  ])
}

resource "google_logging_metric" "event" {
  for_each = local.counted_events

  name        = "tpu-slices/${each.key}"
  description = "How often the functions of the TPU slice provisioner logged ${each.key}"
  filter      = "${local.functions_lines} AND jsonPayload.event=\"${each.key}\""

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

# Numbers of lines can be had as distributions only. Each line has one of each, so the mean over a minute is the number
# itself; percentiles are of use for `ready_seconds` alone, and the buckets are made for it.
resource "google_logging_metric" "number" {
  for_each = local.measured

  name            = "tpu-slices/${each.key}"
  description     = "${each.value.number} of the lines ${each.value.event} of the TPU slice provisioner"
  value_extractor = "EXTRACT(jsonPayload.${each.value.number})"

  filter = join(" AND ", [
    local.functions_lines,
    "jsonPayload.event=\"${each.value.event}\"",
    "jsonPayload.${each.value.number}>=0", # of `slice.decided`, few lines have the number
  ])

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "DISTRIBUTION"
    unit        = "1"

    labels {
      key         = "cluster"
      value_type  = "STRING"
      description = "The cluster that the line names"
    }
  }

  # 1, 2, 5, ... minutes up to a day: a percentile is exact at a bound, and is estimated between two.
  bucket_options {
    explicit_buckets {
      bounds = [1, 60, 120, 300, 600, 900, 1200, 1800, 2700, 3600, 7200, 14400, 28800, 86400]
    }
  }

  label_extractors = {
    cluster = "EXTRACT(jsonPayload.cluster)"
  }

  depends_on = [google_project_service.api]
}

# Monitoring takes a policy on a metric only once it knows the metric's type: "it could take up to 10 minutes", says its
# error 404 (https://github.com/hashicorp/terraform-provider-google/issues/11102). Firestore's indexes take longer.
resource "time_sleep" "metrics" {
  create_duration = "600s"
  triggers = merge(
    { for name, metric in google_logging_metric.event : name => metric.id },
    { for name, metric in google_logging_metric.number : name => metric.id },
  )
}
