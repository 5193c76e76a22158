# Identities, and what lies beside the cluster. In brackets: what another default replaces, and why.

variable "gke_sa_name" {
  description = "The service account of all nodes."
  type        = string
  default     = "triton-gke-sa"

  validation {
    condition     = can(regex("^[a-z][-a-z0-9]{4,28}[a-z0-9]$", var.gke_sa_name))
    error_message = "gke_sa_name must be 6 to 30 of a-z, 0-9 and -, beginning with a letter and not ending in -."
  }
}

variable "gke_sa_roles" {
  # [of every bucket and every repository of the project, reading, beside what nodes must]
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

variable "triton_sa_name" {
  description = "The service account of Triton, which it has by Workload Identity, and its ServiceAccount in Kubernetes."
  type        = string
  default     = "triton-sa"

  validation {
    condition     = can(regex("^[a-z][-a-z0-9]{4,28}[a-z0-9]$", var.triton_sa_name))
    error_message = "triton_sa_name must be 6 to 30 of a-z, 0-9 and -, beginning with a letter and not ending in -."
  }

  validation {
    condition     = var.triton_sa_name != var.gke_sa_name
    error_message = "triton_sa_name and gke_sa_name must differ."
  }
}

variable "triton_sa_roles" {
  # [storage.objectViewer: of every bucket of the project, while its own is enough]
  description = "Roles of Triton in the project, beside reading the bucket of models."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition = alltrue([
      for role in var.triton_sa_roles : can(regex("^(roles|(projects|organizations)/[^/]+/roles)/[\\w.]+$", role)) &&
      !contains(["roles/owner", "roles/editor"], role)
    ])
    error_message = "triton_sa_roles must be roles such as roles/logging.logWriter, and not owner or editor of the project."
  }
}

variable "triton_namespace" {
  # [default: what else is there would get the mesh's proxies too]
  description = "The namespace of Triton and of the ingress gateway."
  type        = string
  default     = "triton"

  validation {
    condition = (
      can(regex("^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$", var.triton_namespace)) &&
      !can(regex("^(kube|gke|gmp|istio|asm)-", var.triton_namespace))
    )
    error_message = "triton_namespace must be up to 63 of a-z, 0-9 and -, begin with a letter, and not be GKE's or the mesh's."
  }
}

variable "repository_bucket_name" {
  description = "The bucket of models, which is made."
  type        = string

  validation {
    condition = (
      can(regex("^[a-z0-9][-_a-z0-9]{1,61}[a-z0-9]$", var.repository_bucket_name)) &&
      !startswith(var.repository_bucket_name, "goog")
    )
    error_message = "repository_bucket_name must be 3 to 63 of a-z, 0-9, - and _, and not begin with goog."
  }
}

variable "force_destroy" {
  description = "true: `terraform destroy` deletes the bucket with all that is in it: copies of models. As applied before."
  type        = bool
  default     = true
  nullable    = false
}

variable "deleted_objects_kept_days" {
  description = "How long deleted objects can be restored: 0, or 7 to 90 days. They are paid for as long."
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
  description = "The repository of serving images, which is made."
  type        = string
  default     = "gke-triton"

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
