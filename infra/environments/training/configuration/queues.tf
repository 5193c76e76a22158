# Flavors, queues and priorities of Kueue.

locals {
  manifests = concat(local.flavor_manifests, local.cohort_manifests, local.queue_manifests, local.priority_manifests)

  flavor_manifests = [
    for name, flavor in local.flavors : {
      apiVersion = "kueue.x-k8s.io/v1beta2"
      kind       = "ResourceFlavor"
      metadata   = { name = name }
      spec = {
        nodeLabels = flavor.labels
        nodeTaints = flavor.taints
        # GKE lets pods with chips tolerate this one, but only when they are made, and Kueue looks at their JobSet.
        tolerations = [{ key = "google.com/tpu", operator = "Exists", effect = "NoSchedule" }]
      }
    }
  ]

  # By namespace, the ClusterQueue that its workloads are in.
  queues = { for name in local.namespaces : name => var.cohort ? name : "cluster-queue" }

  # All chips are the cohort's then. What a namespace may buy at most, its ClusterQueue may borrow.
  cohort_manifests = [
    for name in var.cohort ? ["teams"] : [] : {
      apiVersion = "kueue.x-k8s.io/v1beta2"
      kind       = "Cohort"
      metadata   = { name = name }
      spec       = { resourceGroups = [local.chips_of_all] }
    }
  ]
  chips_of_all = {
    coveredResources = ["google.com/tpu"]
    flavors = [
      for flavor in local.quotas :
      { name = flavor.name, resources = [{ name = "google.com/tpu", nominalQuota = tostring(flavor.chips) }] }
    ]
  }
  chips_of_nobody = {
    for name in local.namespaces : name => {
      coveredResources = ["google.com/tpu"]
      flavors = [
        for flavor in local.quotas : {
          name = flavor.name
          resources = [merge(
            { name = "google.com/tpu", nominalQuota = "0" },
            {
              for limit in [local.chips_per_namespace[name]] : "borrowingLimit" => tostring(limit)
              if limit != null && flavor.name == "provisioned"
            }
          )]
        }
      ]
    }
  }

  queue_manifests = concat(
    [
      for queue, namespaces in { for name, queue in local.queues : queue => name... } : {
        apiVersion = "kueue.x-k8s.io/v1beta2"
        kind       = "ClusterQueue"
        metadata   = { name = queue }
        spec = merge(
          {
            namespaceSelector = {
              matchExpressions = [{ key = "kubernetes.io/metadata.name", operator = "In", values = namespaces }]
            }
            queueingStrategy = "BestEffortFIFO"
            resourceGroups   = [var.cohort ? local.chips_of_nobody[queue] : local.chips_of_all]
            preemption = {
              withinClusterQueue  = "LowerPriority"
              reclaimWithinCohort = var.cohort ? "Any" : "Never"
            }
          },
          { for switch in [var.cohort] : "cohortName" => "teams" if switch },
          { for switch in [var.cohort] : "fairSharing" => { weight = tostring(local.weights[namespaces[0]]) } if switch }
        )
      }
    ],
    [
      for name, queue in local.queues : {
        apiVersion = "kueue.x-k8s.io/v1beta2"
        kind       = "LocalQueue"
        metadata   = { name = "tpu-training", namespace = name }
        spec       = { clusterQueue = queue }
      }
    ]
  )

  # Kueue's own, not Kubernetes': they say who gets quota first, not whose pods the scheduler evicts.
  priority_manifests = [
    for name, priority in { verylow = 100, low = 250, medium = 500, high = 750, veryhigh = 1000 } : {
      apiVersion                    = "kueue.x-k8s.io/v1beta2"
      kind                          = "WorkloadPriorityClass"
      metadata                      = { name = name }
      value                         = priority
    }
  ]
}
