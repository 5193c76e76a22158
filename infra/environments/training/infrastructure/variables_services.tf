# Identities, and what lies beside the cluster. In brackets: what another default replaces, and why.

variable "gke_sa_name" {
  description = "The service account of all nodes."
  type        = string
  default     = "gke-sa"

  validation {
    condition     = can(regex("^[a-z][-a-z0-9]{4,28}[a-z0-9]$", var.gke_sa_name))
    error_message = "gke_sa_name must be 6 to 30 of a-z, 0-9 and -, beginning with a letter and not ending in -."
  }
}

variable "gke_sa_roles" {
  # [storage.objectAdmin and aiplatform.user of the whole project: nodes need neither, see nodes_use_bucket]
  description = "The roles of the nodes in the project: by default what GKE documents as the least. They may read images."
  type        = set(string)
  default     = ["roles/container.defaultNodeServiceAccount"]
  nullable    = false

  validation {
    condition = alltrue([
      for role in var.gke_sa_roles : can(regex("^(roles|(projects|organizations)/[^/]+/roles)/[\\w.]+$", role)) &&
      !contains(["roles/owner", "roles/editor"], role)
    ])
    error_message = "gke_sa_roles must be roles such as roles/logging.logWriter, and not owner or editor of the project."
  }
}

variable "tpu_sa_name" {
  description = "The service account of training workloads, which they have by Workload Identity."
  type        = string
  default     = "cloud-tpu-sa"

  validation {
    condition     = can(regex("^[a-z][-a-z0-9]{4,28}[a-z0-9]$", var.tpu_sa_name))
    error_message = "tpu_sa_name must be 6 to 30 of a-z, 0-9 and -, beginning with a letter and not ending in -."
  }

  validation {
    condition     = length(distinct([var.tpu_sa_name, var.gke_sa_name, var.tensorboard_sa_name])) == 3
    error_message = "tpu_sa_name, gke_sa_name and tensorboard_sa_name must differ."
  }
}

variable "tpu_sa_roles" {
  # [storage.objectAdmin, logging.logWriter, aiplatform.user: the bucket alone is enough; GKE collects what pods print;
  #  uploaders have an account of their own]
  description = "Roles of training workloads in the project, beside reading and writing the bucket."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition = alltrue([
      for role in var.tpu_sa_roles : can(regex("^(roles|(projects|organizations)/[^/]+/roles)/[\\w.]+$", role)) &&
      !contains(["roles/owner", "roles/editor"], role)
    ])
    error_message = "tpu_sa_roles must be roles such as roles/logging.logWriter, and not owner or editor of the project."
  }
}

variable "nodes_use_bucket" {
  description = "true: nodes may use the bucket too. Pods with hostNetwork have the nodes' identity, not their own."
  type        = bool
  default     = false
  nullable    = false
}

variable "artifact_repository_bucket_name" {
  description = "The bucket of datasets, checkpoints and logs, which is made."
  type        = string

  validation {
    condition = (
      can(regex("^[a-z0-9][-_a-z0-9]{1,61}[a-z0-9]$", var.artifact_repository_bucket_name)) &&
      !startswith(var.artifact_repository_bucket_name, "goog")
    )
    error_message = "artifact_repository_bucket_name must be 3 to 63 of a-z, 0-9, - and _, and not begin with goog."
  }
}

variable "force_destroy" {
  description = "true: `terraform destroy` deletes the bucket with all that is in it. It must have been applied before."
  type        = bool
  default     = false
  nullable    = false
}

variable "delete_objects_after_days" {
  description = "Days after which objects are deleted, by the beginning of their names: {\"scratch/\" = 14}."
  type        = map(number)
  default     = {}
  nullable    = false

  validation {
    condition = alltrue([
      for prefix, days in var.delete_objects_after_days : prefix != "" && days >= 1 && days == floor(days)
    ])
    error_message = "delete_objects_after_days: 1 day or more, for names that begin with something: \"\" would be all."
  }
}

variable "deleted_objects_kept_days" {
  description = "How long deleted objects can be restored: 0, or 7 to 90 days. Replaced checkpoints are paid for as long."
  type        = number
  default     = 7

  validation {
    condition = var.deleted_objects_kept_days == 0 || (
      var.deleted_objects_kept_days >= 7 && var.deleted_objects_kept_days <= 90
    )
    error_message = "deleted_objects_kept_days is 0, or 7 to 90."
  }
}

variable "artifact_registry_name" {
  description = "The repository of training images, which is made."
  type        = string
  default     = "gke-tpu-training"

  validation {
    condition     = can(regex("^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$", var.artifact_registry_name))
    error_message = "artifact_registry_name must be up to 63 of a-z, 0-9 and -, beginning with a letter."
  }
}

variable "artifact_registry_location" {
  description = "Where the images are, if Artifact Registry is not in the region: a region, or us, europe or asia."
  type        = string
  default     = null

  validation {
    condition = var.artifact_registry_location == null || can(
      regex("^([a-z]+-[a-z]+[0-9]+|us|europe|asia)$", var.artifact_registry_location)
    )
    error_message = "artifact_registry_location must be the name of a region, or us, europe or asia."
  }
}

variable "enable_tensorboard" {
  description = "false: no TensorBoard in Vertex AI, and no account for its uploaders."
  type        = bool
  default     = true
  nullable    = false
}

variable "tensorboard_region" {
  description = "The region of TensorBoard: Vertex AI is not in all regions that have TPUs, such as us-central2."
  type        = string
  default     = "us-central1"

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.tensorboard_region))
    error_message = "tensorboard_region must be the name of a region, such as us-central1."
  }
}

variable "tensorboard_name" {
  description = "What the console shows as the name of TensorBoard."
  type        = string
  default     = "TPU on GKE training experiments"

  validation {
    condition     = length(var.tensorboard_name) >= 1 && length(var.tensorboard_name) <= 128
    error_message = "tensorboard_name is 1 to 128 characters long."
  }
}

variable "tensorboard_sa_name" {
  description = "The service account of TensorBoard's uploaders."
  type        = string
  default     = "tensorboard-sa"

  validation {
    condition     = can(regex("^[a-z][-a-z0-9]{4,28}[a-z0-9]$", var.tensorboard_sa_name))
    error_message = "tensorboard_sa_name must be 6 to 30 of a-z, 0-9 and -, beginning with a letter and not ending in -."
  }
}
