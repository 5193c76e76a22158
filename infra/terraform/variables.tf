variable "project" {
  description = "The project of functions, messages and records; ../clusters/PROJECT has its clusters' settings."
  type        = string

  # With a project of a domain (example.com:project) the names below would be other than they are read.
  validation {
    condition     = can(regex("^[a-z][-a-z0-9]{4,28}[a-z0-9]$", var.project))
    error_message = "The project must be a project id: 6 to 30 characters of a-z, 0-9 and -."
  }
}

variable "region" {
  description = "The region of the functions, the schedule and the relay's image, such as us-central1."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "The region must be the name of a region, such as us-central1."
  }
}

variable "firestore_location" {
  description = "The location of the records: a region, or a multi-region such as nam5. It cannot be changed later."
  type        = string
  nullable    = false
}

variable "commit" {
  description = "The commit that is deployed, a label of all that can have one; \"\" if it is not known."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^([0-9a-f]{7,40})?$", var.commit))
    error_message = "The commit must be 7 to 40 characters of 0-9 and a-f, or empty."
  }
}

# Removal takes two steps, since Terraform destroys by what is in its state: `terraform apply -var=destroy=yes`, with
# `-target` for the database, its indexes and its fields, which fails while slices stand; then `terraform destroy
# -var=destroy=yes`. Both read the functions' source in build/functions, as a plan does.
variable "destroy" {
  description = "yes: the records may be deleted. Anything but the two steps of a removal leaves it at no."
  type        = string
  default     = "no"

  validation {
    condition     = contains(["no", "yes"], var.destroy)
    error_message = "destroy is no, or yes."
  }
}

# The variables below are seldom set. They can be written into a file terraform.tfvars in this folder.

variable "database" {
  description = "existing: take over the Firestore database (default) that the project has, and never delete it."
  type        = string
  default     = "new"

  validation {
    condition     = contains(["new", "existing"], var.database)
    error_message = "database is new, or existing."
  }
}

# IAM keeps the id of a deleted role: for 7 days the provider restores the role, then for 30 days nobody can have the id.
variable "role_prefix" {
  description = "How the ids of the custom roles begin. Another one, if the last removal is 7 to 37 days ago."
  type        = string
  default     = "tpuSlice"

  # With the rest of the id, it is at most 64 characters long: see iam.tf.
  validation {
    condition     = can(regex("^[a-z][a-zA-Z0-9]{0,15}$", var.role_prefix))
    error_message = "The prefix must be 1 to 16 letters and digits, beginning with a small letter."
  }
}

# An instance has one CPU and serves 4 requests at once. Preflight says how many Cloud Run's quota of the region allows.
variable "max_instances" {
  description = "How many instances each function has at most."
  type        = number
  default     = 10
  nullable    = false

  validation {
    condition     = var.max_instances >= 1 && var.max_instances <= 1000 && floor(var.max_instances) == var.max_instances
    error_message = "max_instances is a whole number from 1 to 1000."
  }
}

variable "existing_workload_policies" {
  description = "Names of workload policies that somebody else makes: see workload_policies.tf."
  type        = set(string)
  default     = []
  nullable    = false
}

variable "deleted_clusters" {
  description = "Ids of clusters without a file here that do not exist in GKE any more: see clusters.tf."
  type        = set(string)
  default     = []
  nullable    = false
}

variable "relay_members" {
  description = "By the id of a self-managed cluster, who its relay is in IAM, if not a service account that is made here."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition = alltrue([
      for member in values(var.relay_members) :
      can(regex("^principal://iam\\.googleapis\\.com/projects/[0-9]+/locations/global/workloadIdentityPools/[^/]+/subject/.", member))
      || can(regex("^serviceAccount:[^@]+@[^@]+$", member))
    ])
    error_message = <<-EOT
      A relay is serviceAccount:EMAIL, or the subject of a workload identity pool:
      principal://iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/subject/SUBJECT.
    EOT
  }

  validation {
    condition     = length(setsubtract(keys(var.relay_members), keys(local.self_managed))) == 0
    error_message = "Each id must be that of a self-managed cluster, one with a section compute: a relay on GKE needs nothing."
  }
}

variable "notification_channels" {
  description = "Who is notified of alerts. The build finds out: python -m infra.preflight channels."
  type        = set(string)
  default     = []
  nullable    = false

  validation {
    condition = alltrue([
      for channel in var.notification_channels :
      can(regex("^projects/[a-z][-a-z0-9]{4,28}[a-z0-9]/notificationChannels/[0-9]+$", channel))
    ])
    error_message = "A channel is named projects/PROJECT/notificationChannels/NUMBER."
  }

  validation {
    condition = alltrue([
      for channel in var.notification_channels :
      contains(setunion([var.project], local.gke_projects), try(split("/", channel)[1], ""))
    ])
    error_message = "A channel must be of the provisioner's project, or of a project with clusters: it serves that one only."
  }
}

# Who made it granted tpu-slice-notify the role roles/secretmanager.secretAccessor on it: docs/operating/notifications.md.
variable "notification_targets" {
  description = "The id of the secret with the targets of notifications, in the provisioner's project. Empty: there are none."
  type        = string
  default     = ""
  nullable    = false

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{0,255}$", var.notification_targets))
    error_message = "notification_targets is the id of a secret, without its project: letters, digits, - and _."
  }
}
