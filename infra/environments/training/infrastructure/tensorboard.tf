locals {
  tensorboard = toset(var.enable_tensorboard ? ["experiments"] : [])
}

resource "google_vertex_ai_tensorboard" "tensorboard" {
  for_each = local.tensorboard

  display_name = var.tensorboard_name
  description  = "Experiments of ${var.cluster_name}"
  region       = var.tensorboard_region

  depends_on = [google_project_service.api]
}
