# JobSet and Kueue, each by its own chart. A release is done when its Deployment is available, and they are ready
# only when their webhooks have certificates and listen (AddReadyzCheck in the main.go of each): what follows is not refused.

resource "helm_release" "jobset" {
  name             = "jobset"
  namespace        = "jobset-system"
  create_namespace = true
  repository       = "oci://registry.k8s.io/jobset/charts"
  chart            = "jobset"
  version          = trimprefix(var.jobset_version, "v")
  wait             = true
  timeout          = 600

  values = [yamlencode({
    controller = { nodeSelector = local.infrastructure.cpu_pool.node_labels }
  })]

  depends_on = [terraform_data.request]
}

resource "helm_release" "kueue" {
  name             = "kueue"
  namespace        = "kueue-system"
  create_namespace = true
  repository       = "oci://registry.k8s.io/kueue/charts"
  chart            = "kueue"
  version          = trimprefix(var.kueue_version, "v")
  wait             = true
  timeout          = 600

  values = [yamlencode({
    controllerManager = {
      nodeSelector = local.infrastructure.cpu_pool.node_labels
      # The chart's 512Mi are for few nodes.
      manager = { resources = { requests = { memory = "2Gi" }, limits = { memory = "2Gi" } } }
    }
    managerConfig = { controllerManagerConfigYaml = yamlencode(merge(local.kueue, local.fair_sharing)) }
  })]

  depends_on = [helm_release.jobset] # whose kind it must find when it starts
}

# Queues, by a chart without a word of its own: kubernetes_manifest would need Kueue's kinds to be planned. They are
# removed, and waited for, before Kueue: nobody else could take their finalizers away.
# A LocalQueue cannot be moved to another ClusterQueue: who changes `cohort` has another release, and new queues.
resource "helm_release" "queues" {
  name      = var.cohort ? "team-queues" : "queues"
  namespace = "kueue-system"
  chart     = "${path.module}/queues"
  wait      = true
  timeout   = 600
  values    = [yamlencode({ manifests = local.manifests })]

  depends_on = [kubernetes_namespace_v1.training]
}

locals {
  kueue = {
    apiVersion       = "config.kueue.x-k8s.io/v1beta2"
    kind             = "Configuration"
    health           = { healthProbeBindAddress = ":8081" }
    metrics          = { bindAddress = ":8443" }
    webhook          = { port = 9443 }
    leaderElection   = { leaderElect = true, resourceName = "c1f6bfd2.kueue.x-k8s.io" }
    clientConnection = { qps = 300, burst = 500 }
    controller = { groupKindConcurrency = {
      "Job.batch"                   = 5
      "Workload.kueue.x-k8s.io"     = 10
      "LocalQueue.kueue.x-k8s.io"   = 5
      "ClusterQueue.kueue.x-k8s.io" = 5
    } }
    manageJobsWithoutQueueName = false
    integrations               = { frameworks = ["batch/job", "jobset.x-k8s.io/jobset"] }

    # A slice that never comes gives its quota to others.
    waitForPodsReady = { timeout = "${local.pods_ready_minutes}m", blockAdmission = false }

    # Chips are what is scarce: nodes that have some have CPUs and memory for their pods, too.
    resources = { excludeResourcePrefixes = ["cpu", "memory", "ephemeral-storage"] }
  }

  # Who has more than its share of all is preempted first.
  preemption_strategies = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
  fair_sharing = {
    for switch in [var.cohort] : "fairSharing" => { preemptionStrategies = local.preemption_strategies } if switch
  }
}
