# One dashboard: what the clusters hold, and how slices, messages and functions fare.

locals {
  # Each chart: its title, how it is drawn, and its lines by what the legend calls them.
  charts = [
    {
      title = "Chips bought, held and idle, by cluster"
      plot  = "LINE"
      lines = { for number in ["chips_bought", "chips_held", "chips_idle"] : number => merge(local.counted, {
        filter = "${local.log_metrics}/cluster.counted/${number}\""
      }) }
    },
    {
      title = "Slices by phase"
      plot  = "STACKED_AREA"
      lines = {
        for number in ["ready", "provisioning", "queued", "waiting", "releasing", "refused", "blocked", "on_hold"] :
        number => merge(local.counted, { filter = "${local.log_metrics}/cluster.counted/${number}\"" })
      }
    },
    {
      title = "Slices that are kept warm, and spares, by cluster"
      plot  = "LINE"
      lines = { for number in ["warm", "spares"] : number => merge(local.counted, {
        filter = "${local.log_metrics}/cluster.counted/${number}\""
      }) }
    },
    {
      title = "Seconds from request to READY, by cluster"
      plot  = "LINE"
      lines = { for percentile in ["50", "95"] : "${percentile} %" => merge(local.counted, {
        filter  = "${local.log_metrics}/slice.decided/ready_seconds\""
        reducer = "REDUCE_PERCENTILE_${percentile}"
        period  = "900s"
      }) }
    },
    {
      title = "Seconds of the longest release, and of the longest payment without use, by cluster"
      plot  = "LINE"
      lines = { for number in ["releasing_seconds", "paid_seconds"] : number => merge(local.counted, {
        filter = "${local.log_metrics}/cluster.counted/${number}\""
      }) }
    },
    {
      title = "Lines that ask for somebody"
      plot  = "STACKED_BAR"
      lines = { for event in setsubtract(local.counted_events, ["sweep.completed", "clusters.searched"]) : event => {
        filter = "${local.log_metrics}/${event}\"", aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM", group_by = []
        period = "300s"
      } }
    },
    {
      title = "5xx answers of functions"
      plot  = "STACKED_BAR"
      lines = { answers = {
        filter   = local.failed_requests, aligner = "ALIGN_DELTA", reducer = "REDUCE_SUM"
        group_by = ["resource.label.service_name"], period = "300s"
      } }
    },
    {
      title = "Seconds that the oldest message waits, by subscription"
      plot  = "LINE"
      lines = { oldest = {
        filter   = local.unacked_age, aligner = "ALIGN_MAX", reducer = "REDUCE_MAX"
        group_by = ["resource.label.subscription_id"], period = "60s"
      } }
    },
    {
      title = "Messages that were given up"
      plot  = "LINE"
      lines = { dead-letters = {
        filter = local.dead_letters, aligner = "ALIGN_MAX", reducer = "REDUCE_SUM", group_by = [], period = "60s"
      } }
    },
  ]

  # Each sweep logs one line for each cluster: the mean over a minute is the number itself.
  counted = { aligner = "ALIGN_DELTA", reducer = "REDUCE_MEAN", group_by = ["metric.label.cluster"], period = "60s" }

  # As the API answers it, which leaves out positions of 0 and empty lists: with them, each plan would change it.
  dashboard = {
    displayName = "TPU slices"
    labels      = { tpu-slice-provisioner = "" }
    mosaicLayout = {
      columns = 48
      tiles = [for at, chart in local.charts : merge({
        for axis, position in { xPos = at % 2 * 24, yPos = floor(at / 2) * 16 } : axis => position if position != 0
        }, {
        width  = 24
        height = 16
        widget = {
          title = chart.title
          xyChart = {
            dataSets = [for legend, line in chart.lines : {
              plotType       = chart.plot
              targetAxis     = "Y1"
              legendTemplate = join(" ", concat([legend], [for label in line.group_by : "$${${replace(label, ".label.", ".labels.")}}"]))
              timeSeriesQuery = {
                timeSeriesFilter = {
                  filter = line.filter
                  aggregation = merge({
                    alignmentPeriod    = line.period
                    perSeriesAligner   = line.aligner
                    crossSeriesReducer = line.reducer
                  }, length(line.group_by) == 0 ? {} : { groupByFields = line.group_by })
                }
              }
            }]
          }
        }
      })]
    }
  }
}

resource "google_monitoring_dashboard" "slices" {
  dashboard_json = jsonencode(local.dashboard)

  depends_on = [google_project_service.api]
}
