# Where workloads are, and as whom they act.

resource "kubernetes_namespace_v1" "training" {
  for_each = local.namespaces

  metadata {
    name = each.key

    labels = {
      "pod-security.kubernetes.io/enforce" = var.pod_security
    }
  }

  # On removal, what is left in it has somebody who takes its finalizers away.
  depends_on = [helm_release.kueue]
}

resource "kubernetes_service_account_v1" "workloads" {
  for_each = local.identities

  metadata {
    name        = each.value.name
    namespace   = kubernetes_namespace_v1.training[each.value.namespace].metadata[0].name
    annotations = { "iam.gke.io/gcp-service-account" = each.value.address }
  }
}

# Each may act as the Google account of its name.
resource "google_service_account_iam_member" "workloads" {
  for_each = local.identities

  service_account_id = "projects/${var.project_id}/serviceAccounts/${each.value.address}"
  role               = "roles/iam.workloadIdentityUser"
  member             = "serviceAccount:${local.infrastructure.workload_pool}[${each.key}]"

  depends_on = [terraform_data.request]
}
