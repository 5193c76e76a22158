variable "project" {
  description = "The project of functions, messages and records; ../clusters/PROJECT has its clusters' settings."
  type        = string

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

variable "relay_identity" {
  description = "The Kubernetes ServiceAccount that the relay runs as, in every cluster."
  type = object({
    namespace       = string
    service_account = string
  })
  default = {
    namespace       = "tpu-slice-provisioner"
    service_account = "relay"
  }
}
