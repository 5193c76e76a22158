# Where the infrastructure is, who trains, and which versions. In brackets: what another default replaces, and why.
# What several variables say together is checked in preconditions.tf.

variable "project_id" {
  description = "The project of the environment."
  type        = string

  validation {
    condition     = can(regex("^[a-z][-a-z0-9]{4,28}[a-z0-9]$", var.project_id))
    error_message = "The project must be a project id: 6 to 30 characters of a-z, 0-9 and -."
  }
}

variable "state_bucket" {
  description = "The bucket of the infrastructure's state."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][-_.a-z0-9]{1,220}[a-z0-9]$", var.state_bucket))
    error_message = "state_bucket must be the name of a bucket, without gs://."
  }
}

variable "state_prefix" {
  description = "The prefix of the infrastructure's state in that bucket."
  type        = string
  default     = "gke-tpu-training-environment/infrastructure"

  validation {
    condition     = can(regex("^[^/].*[^/]$", var.state_prefix))
    error_message = "state_prefix must be a name that neither begins nor ends with /."
  }
}

variable "tpu_namespace" {
  description = "The namespace of training workloads, which is made."
  type        = string
  default     = "tpu-training"

  validation {
    condition = (
      can(regex("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", var.tpu_namespace)) &&
      !can(regex("^(default$|kube-|gke-|gmp-)", var.tpu_namespace))
    )
    error_message = "tpu_namespace must be up to 63 of a-z, 0-9 and -, and not default, kube-…, gke-… or gmp-…."
  }
}

variable "teams" {
  description = "Teams with a namespace and a queue of their own. The weight counts with cohort: 2 has twice the share of 1."
  type        = map(object({ weight = optional(number, 1) }))
  default     = {}
  nullable    = false

  validation {
    condition = alltrue([
      for name in keys(var.teams) :
      can(regex("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", name)) && !can(regex("^(default$|kube-|gke-|gmp-)", name))
    ])
    error_message = "The names of teams must be up to 63 of a-z, 0-9 and -, and not default, kube-…, gke-… or gmp-…."
  }

  validation {
    condition     = alltrue([for team in values(var.teams) : team.weight > 0])
    error_message = "The weight of a team must be above 0."
  }
}

variable "cohort" {
  description = "true: each namespace has a ClusterQueue, and they share all chips by weight. false: one for all."
  type        = bool
  default     = false
  nullable    = false
}

variable "pod_security" {
  # [no level; its pods are privileged]
  description = "What pods may have, by the Pod Security Standards: restricted, baseline, or privileged for hostNetwork."
  type        = string
  default     = "baseline"

  validation {
    condition     = contains(["restricted", "baseline", "privileged"], var.pod_security)
    error_message = "pod_security is restricted, baseline or privileged."
  }
}

variable "provisioner_settings_file" {
  description = "The provisioner's settings for this cluster, from this folder. Default: there is no provisioner."
  type        = string
  default     = null

  validation {
    condition = (
      try(length(var.provisioner_settings_file), 0) == 0 || can(yamldecode(file(var.provisioner_settings_file)).path)
    )
    error_message = "provisioner_settings_file must be a cluster's settings: ../../../clusters/PROJECT/CLUSTER.yaml."
  }
}

variable "pods_ready_timeout" {
  description = "Minutes after which Kueue takes the quota from a workload without its pods. Default: computed."
  type        = number
  default     = null

  validation {
    condition     = coalesce(var.pods_ready_timeout, 40) >= 40
    error_message = "pods_ready_timeout must be 40 or more: GKE tries for 35 minutes to get hosts, then they start."
  }
}

variable "jobset_version" {
  # [v0.2.3, whose kind of JobSet has no failure policy]
  description = "The version of JobSet."
  type        = string
  default     = "v0.10.1"

  validation {
    condition     = can(regex("^v?(0\\.[1-9]\\d|[1-9]\\d*\\.\\d+)\\.\\d+$", var.jobset_version))
    error_message = "jobset_version must be v0.10.0 or newer: older ones are ready before their webhooks are."
  }
}

variable "kueue_version" {
  # [v0.4.2, which has neither these objects nor a wait for ready pods that goes with them]
  description = "The version of Kueue."
  type        = string
  default     = "v0.19.2"

  validation {
    condition     = can(regex("^v?(0\\.(19|[2-9]\\d)|[1-9]\\d*\\.\\d+)\\.\\d+$", var.kueue_version))
    error_message = "kueue_version must be v0.19.0 or newer: to older ones, slices that may be bought would fit no workload."
  }
}
