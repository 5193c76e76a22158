# Alerts. Each is named after its paragraph in ../../docs/runbook.md, which its notifications carry.
# They notify every channel of their project with the label tpu-slice-provisioner = PROJECT; without one, nobody.

locals {
  # By heading, the paragraphs of the runbook.
  runbook = {
    for part in slice(local.runbook_parts, 1, length(local.runbook_parts)) :
    regex("^.*", part) => trimspace(replace(part, "/^.*/", ""))
  }
  runbook_parts = split("\n## ", file("${path.module}/../../docs/runbook.md"))

  # A channel serves policies of its own project.
  channels = {
    for project in setunion([var.project], local.gke_projects) :
    project => [for channel in var.notification_channels : channel if split("/", channel)[1] == project]
  }

  # Lines that ask for somebody, and how many of them within 5 minutes are not yet too many. What is logged once, and not
  # again while it holds, stays an incident for a day.
  line_alerts = {
    "A relay is silent"         = { severity = "CRITICAL", lines = { "relay.silent" = 0 } }
    "Pods are refused"          = { severity = "CRITICAL", lines = { "pods.refused" = 0 } }
    "Releases are stopped"      = { severity = "CRITICAL", lines = { "releases.stopped" = 0 }, once = true }
    "A function failed"         = { severity = "ERROR", lines = { "message.failed" = 0 }, once = true }
    "A message was rejected"    = { severity = "WARNING", lines = { "message.rejected" = 0 }, once = true }
    "A record is unreadable"    = { severity = "ERROR", lines = { "document.unreadable" = 0 } }
    "Hosts stay away"           = { severity = "WARNING", lines = { "hosts.late" = 0 }, once = true }
    "Settings are not in force" = { severity = "ERROR", lines = { "settings.missing" = 0, "settings.unreadable" = 0 } }

    # Of one target only, which somebody wrote into the settings.
    "Notifications fail" = { severity = "WARNING", lines = { "notification.failed" = 0 }, once = true }

    # What fails in one sweep or two has often passed by the next: GKE or Firestore did not answer.
    "A cluster is not swept" = { severity = "ERROR", lines = { "sweep.failed" = 2 } }
  }

  # Numbers of lines: what their mean of 5 minutes must not be above for as long as `duration`.
  number_alerts = {
    # What settles by itself does so in the next sweeps.
    "Slices are blocked" = {
      severity = "WARNING"
      numbers  = { "cluster.counted/blocked" = { above = 0, duration = "300s" } }
    }

    # GKE gives up a creation after some 35 minutes; only then can the pool be deleted, which takes some 10 more. The time
    # of a slice that somebody else used counts from the first: once nobody does, it has a quarter of an hour.
    "A slice is not released" = {
      severity = "WARNING"
      numbers  = { "cluster.counted/releasing_seconds" = { above = 3600, duration = "900s" } }
    }

    # By then a creation is over, and so is the half hour that its hosts have to be usable.
    "A slice is paid for without use" = {
      severity = "WARNING"
      numbers  = { "cluster.counted/paid_seconds" = { above = 3600, duration = "900s" } }
    }

    # Nobody needs it, or waits for it in vain. One that a Job needs, and that stands, is not counted.
    "A slice is held" = {
      severity = "WARNING"
      numbers  = { "cluster.counted/held_seconds" = { above = 86400, duration = "300s" } }
    }

    # The inventory check sets right what it finds. Each finding is told all the same: there should be none.
    "Node pools belong to nobody" = {
      severity = "ERROR"
      once     = true
      lines    = { "orphans.deferred" = 0, "pools.unproven" = 0 }
      numbers = {
        "inventory.checked/orphans"   = { above = 0, duration = "0s" }
        "inventory.checked/ownerless" = { above = 0, duration = "0s" }
      }
    }

    # The median of an hour. Deciding takes seconds: what lasts is GKE's creation, which it gives up after some 35 minutes.
    "Slices take long to be ready" = {
      severity = "WARNING"
      numbers = {
        "slice.decided/ready_seconds" = {
          above = 1800, duration = "0s", reducer = "REDUCE_PERCENTILE_50", period = "3600s"
        }
      }
    }

    # Slices that nobody uses are given up after 30 minutes (`idle_after`): after an hour it is not the same ones.
    "Chips are idle" = {
      severity = "WARNING"
      numbers  = { "cluster.counted/idle_percent" = { above = 50, duration = "3600s" } }
    }
  }

  platform_alerts = {
    # Each is one that was given up; it stays until somebody takes it, or for 7 days.
    "Messages were given up" = {
      severity   = "ERROR"
      auto_close = "1800s"
      conditions = [{
        name   = "dead-letters", filter = local.dead_letters, aligner = "ALIGN_MAX", reducer = "REDUCE_SUM", group_by = [],
        period = "300s", above = 0, duration = "0s", of = null
      }]
    }

    # Retries are at most a minute apart. The functions' messages are given up after 5 to 20 deliveries: this comes before.
    "Messages wait" = {
      severity   = "ERROR"
      auto_close = "1800s"
      conditions = [{
        name     = "oldest message", filter = local.unacked_age, aligner = "ALIGN_MAX", reducer = "REDUCE_MAX",
        group_by = ["resource.label.subscription_id"], period = "60s", above = 600, duration = "300s", of = null
      }]
    }

    # Of all requests. Temporary errors are answered so, too, and succeed when they are delivered again. A function that
    # cannot start, or has too little memory, answers nothing else, and logs no line of its own.
    "A function answers with errors" = {
      severity   = "ERROR"
      auto_close = "1800s"
      conditions = [{
        name   = "5xx of all requests", filter = local.failed_requests,
        of     = local.requests, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM",
        period = "300s", group_by = ["resource.label.service_name"], above = 0.5, duration = "600s"
      }]
    }
  }

  alerts = merge(
    {
      for name, alert in merge(local.line_alerts, local.number_alerts) : name => {
        severity   = alert.severity
        auto_close = try(alert.once, false) ? "86400s" : "1800s"
        conditions = concat(
          [for event, above in try(alert.lines, {}) : {
            name     = event, filter = "${local.log_metrics}/${event}\"", aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM",
            group_by = ["metric.label.cluster"], period = "300s", above = above, duration = "0s", of = null
          }],
          [for number, limit in try(alert.numbers, {}) : {
            name     = number, filter = "${local.log_metrics}/${number}\"", aligner = "ALIGN_DELTA",
            reducer  = try(limit.reducer, "REDUCE_MEAN"),
            group_by = ["metric.label.cluster"], period = try(limit.period, "300s"),
            above    = limit.above, duration = limit.duration, of = null
          }],
        )
      }
    },
    local.platform_alerts,
  )

  # By schedule, the lines that follow its ticks, and after how many seconds without one somebody should look.
  ticked = {
    for name, row in local.schedules : name => row.cluster == "" ? {
      lines   = "${local.log_metrics}/clusters.searched\""
      seconds = 3600
      } : {
      lines   = "${local.log_metrics}/sweep.completed\" AND metric.label.cluster=\"${row.cluster}\""
      seconds = 900
    }
  }

  log_metrics = "resource.type=\"cloud_run_revision\" AND metric.type=\"logging.googleapis.com/user/tpu-slices"

  dead_letters = join(" AND ", [
    "resource.type=\"pubsub_subscription\"",
    "resource.label.subscription_id=\"dead-letters\"",
    "metric.type=\"pubsub.googleapis.com/subscription/num_undelivered_messages\"",
  ])
  # Not of notifications: those to a target that is down wait for an hour, and others go on.
  unacked_age = join(" AND ", [
    "resource.type=\"pubsub_subscription\"",
    "resource.label.subscription_id=monitoring.regex.full_match(\"${join("|", [
      for name, row in local.messaging.subscriptions : replace(name, "{cluster}", ".+")
      if !contains(["", "notify"], lookup(row, "function", name == "dead-letters" ? "" : "relay"))
    ])}\")",
    "metric.type=\"pubsub.googleapis.com/subscription/oldest_unacked_message_age\"",
  ])
  requests = join(" AND ", [
    "resource.type=\"cloud_run_revision\"",
    "resource.label.service_name=monitoring.regex.full_match(\"tpu-slice-(${join("|", keys(local.functions))})\")",
    "metric.type=\"run.googleapis.com/request_count\"",
  ])
  failed_requests = "${local.requests} AND metric.label.response_code_class=\"5xx\""
}

# An incident ends when its condition does, or `auto_close` after the last data.
resource "google_monitoring_alert_policy" "alert" {
  for_each = local.alerts

  display_name          = "TPU slices: ${each.key}"
  combiner              = "OR"
  severity              = each.value.severity
  notification_channels = local.channels[var.project]
  user_labels           = local.labels

  dynamic "conditions" {
    for_each = each.value.conditions

    content {
      display_name = conditions.value.name

      condition_threshold {
        filter             = conditions.value.filter
        comparison         = "COMPARISON_GT"
        threshold_value    = conditions.value.above
        duration           = conditions.value.duration
        denominator_filter = conditions.value.of

        aggregations {
          alignment_period     = conditions.value.period
          per_series_aligner   = conditions.value.aligner
          cross_series_reducer = conditions.value.reducer
          group_by_fields      = conditions.value.group_by
        }

        dynamic "denominator_aggregations" {
          for_each = conditions.value.of[*]

          content {
            alignment_period     = conditions.value.period
            per_series_aligner   = conditions.value.aligner
            cross_series_reducer = conditions.value.reducer
            group_by_fields      = conditions.value.group_by
          }
        }
      }
    }
  }

  alert_strategy {
    auto_close = each.value.auto_close
  }

  documentation {
    mime_type = "text/markdown"
    content   = local.runbook[each.key]
  }

  depends_on = [time_sleep.metrics]
}

# There is a tick for each cluster each minute, and one for the project each quarter of an hour. Metrics of log lines may lag
# by 10 minutes (https://cloud.google.com/logging/docs/logs-based-metrics/troubleshooting): a shorter time would be a false
# alarm. Whether a metric without lines has no data or zeros, both count. Each schedule has a policy of its own, which goes with
# it: of a cluster that is served no more there is no line either.
resource "google_monitoring_alert_policy" "sweep" {
  for_each = local.ticked

  display_name          = "TPU slices: The sweep does not run (${each.key})"
  combiner              = "OR"
  severity              = "CRITICAL"
  notification_channels = local.channels[var.project]
  user_labels           = local.labels

  conditions {
    display_name = "no line"

    condition_absent {
      filter   = each.value.lines
      duration = "${each.value.seconds}s"

      aggregations {
        alignment_period     = "60s"
        per_series_aligner   = "ALIGN_DELTA"
        cross_series_reducer = "REDUCE_SUM"
      }
    }
  }

  conditions {
    display_name = "0 lines"

    condition_threshold {
      filter          = each.value.lines
      comparison      = "COMPARISON_LT"
      threshold_value = 1
      duration        = "0s"

      aggregations {
        alignment_period     = "${each.value.seconds}s"
        per_series_aligner   = "ALIGN_DELTA"
        cross_series_reducer = "REDUCE_SUM"
      }
    }
  }

  alert_strategy {
    auto_close = "86400s"
  }

  documentation {
    mime_type = "text/markdown"
    content   = local.runbook["The sweep does not run"]
  }

  depends_on = [time_sleep.metrics]
}

# The relays log to the projects of their clusters, where no metric of ours is: the lines themselves are matched. Another
# provisioner may serve other clusters of the same project.
resource "google_monitoring_alert_policy" "relay" {
  for_each = local.gke_projects

  project               = each.key
  display_name          = "TPU slices: A relay logs errors (of ${var.project})"
  combiner              = "OR"
  severity              = "ERROR"
  notification_channels = local.channels[each.key]
  user_labels           = local.labels

  conditions {
    display_name = "severity ERROR"

    condition_matched_log {
      filter = join(" AND ", [
        "resource.type=\"k8s_container\"",
        "resource.labels.namespace_name=\"${local.relay_namespace}\"",
        "(${local.served_clusters_filter[each.key]})",
        "severity>=ERROR",
      ])
    }
  }

  # One notification an hour at most: what fails with each attempt logs a line for each.
  alert_strategy {
    auto_close = "86400s"

    notification_rate_limit {
      period = "3600s"
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = local.runbook["A relay logs errors"]
  }

  depends_on = [google_project_service.api]
}
