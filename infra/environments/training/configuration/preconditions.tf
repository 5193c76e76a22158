# What no variable can say alone. All of it is told before anything is planned.

resource "terraform_data" "request" {
  input = local.quotas

  lifecycle {
    precondition {
      condition     = local.infrastructure.project_id == var.project_id
      error_message = "The infrastructure is in ${local.infrastructure.project_id}, not in ${var.project_id}."
    }

    precondition {
      condition = !local.has_provisioner || try(local.settings.path, "") == local.infrastructure.cluster.id
      error_message = join(" ", [
        "provisioner_settings_file is of ${try(local.settings.path, "")}, not of ${local.infrastructure.cluster.id}."
      ])
    }

    precondition {
      condition = !local.has_provisioner || length(local.limits) > 0
      error_message = join(" ", [
        "provisioner_settings_file must have policy.chips_per_cluster, or policy.chips_per_namespace: a queue has as many",
        "chips, and without a limit nothing would ever wait in it.",
      ])
    }
  }
}
