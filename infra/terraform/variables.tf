variable "project" {
  description = "The project of functions, messages and records; the files in ../clusters/PROJECT are its clusters."
  type        = string

  validation {
    condition     = can(regex("^[a-z][-a-z0-9]{4,28}[a-z0-9]$", var.project))
    error_message = "Give the id of a project: 6 to 30 characters of a-z, 0-9 and -."
  }
}

variable "region" {
  description = "Where the functions, the schedule and the relay's image live, as in us-central1."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "Give the name of a region, as in us-central1."
  }
}

variable "firestore_location" {
  description = "Where the records live: a region or a multi-region such as nam5. It cannot be changed later."
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
