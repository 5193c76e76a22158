# What a build waits for, and what users name.

output "namespaces" {
  description = "The namespaces of training workloads."
  value       = sort(local.namespaces)
}

output "cluster_queue" {
  description = "The ClusterQueue of tpu_namespace; with cohort, each namespace has another."
  value       = local.queues[var.tpu_namespace]
}

output "local_queues" {
  description = "By namespace, the queue that a workload names in its label kueue.x-k8s.io/queue-name."
  value       = { for name in local.namespaces : name => "tpu-training" }
}

output "quotas" {
  description = "Chips by flavor: those of static slices, and those that may be bought."
  value       = { for flavor in local.quotas : flavor.name => flavor.chips }
}

output "chips" {
  description = "The chips of all flavors together."
  value       = sum(local.quotas[*].chips)
}

output "pods_ready_timeout" {
  description = "Minutes after which Kueue takes the quota from a workload without its pods."
  value       = local.pods_ready_minutes
}
