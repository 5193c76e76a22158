# What the TPUs do. GKE has these metrics of each node, by chip, whether or not a pod is on it: idle chips are seen. Duty cycle
# and memory need a program that runs libtpu 2023 or later (cloud.google.com/kubernetes-engine/docs/how-to/tpus).

locals {
  of_cluster = "resource.type=\"k8s_node\" AND resource.labels.cluster_name=\"${var.cluster_name}\""

  # By title: the metric or, of two, the ratio; and its unit.
  charts = [
    { title = "Duty cycle: time in which a chip computes", metric = "duty_cycle", of = "", unit = "%" },
    { title = "TensorCore utilization: operations, of those possible", metric = "tensorcore_utilization", of = "", unit = "%" },
    { title = "HBM in use", metric = "memory_used", of = "memory_total", unit = "" },
    { title = "HBM bandwidth in use", metric = "memory_bandwidth_utilization", of = "", unit = "%" },
  ]

  # The mean of a node's chips; the nodes of a slice are named after its node pool.
  by_node = {
    alignmentPeriod    = "60s"
    perSeriesAligner   = "ALIGN_MEAN"
    crossSeriesReducer = "REDUCE_MEAN"
    groupByFields      = ["resource.label.node_name"]
  }

  queries = [
    for chart in local.charts : chart.of == "" ? jsonencode({
      timeSeriesFilter = {
        filter      = "metric.type=\"kubernetes.io/node/accelerator/${chart.metric}\" AND ${local.of_cluster}"
        aggregation = local.by_node
      }
      }) : jsonencode({
      timeSeriesFilterRatio = {
        numerator = {
          filter      = "metric.type=\"kubernetes.io/node/accelerator/${chart.metric}\" AND ${local.of_cluster}"
          aggregation = local.by_node
        }
        denominator = {
          filter      = "metric.type=\"kubernetes.io/node/accelerator/${chart.of}\" AND ${local.of_cluster}"
          aggregation = local.by_node
        }
      }
    })
  ]

  # As the API answers it, which leaves out positions of 0, and writes the axis of each line.
  dashboard = {
    displayName = "TPUs of ${var.cluster_name}"
    labels      = { tpu-slice-provisioner = "" }
    mosaicLayout = {
      columns = 48
      tiles = [
        for index, chart in local.charts : merge({
          for axis, position in { xPos = 24 * (index % 2), yPos = 16 * floor(index / 2) } : axis => position if position != 0
          }, {
          width  = 24
          height = 16
          widget = {
            title = chart.title
            xyChart = {
              dataSets = [{
                plotType        = "LINE"
                targetAxis      = "Y1"
                timeSeriesQuery = merge(jsondecode(local.queries[index]), chart.unit == "" ? {} : { unitOverride = chart.unit })
              }]
            }
          }
        })
      ]
    }
  }
}

resource "google_monitoring_dashboard" "tpus" {
  dashboard_json = jsonencode(local.dashboard)

  depends_on = [google_project_service.api]
}
