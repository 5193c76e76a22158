# The records. As long as `destroy` is no, neither Terraform nor the console deletes them: an accidental `terraform
# destroy` takes away the rest and fails here, and the next apply restores the rest. After a removal with `destroy` the
# database is gone, and can be made again after some 5 minutes.
resource "google_firestore_database" "records" {
  name                              = "(default)" # the one that the functions use
  location_id                       = var.firestore_location
  type                              = "FIRESTORE_NATIVE"
  point_in_time_recovery_enablement = "POINT_IN_TIME_RECOVERY_ENABLED"
  delete_protection_state           = local.records_go ? "DELETE_PROTECTION_DISABLED" : "DELETE_PROTECTION_ENABLED"
  deletion_policy                   = local.records_go ? "DELETE" : var.database == "new" ? "PREVENT" : "ABANDON"

  lifecycle {
    precondition {
      condition     = length(flatten(values(local.stranded))) == 0
      error_message = <<-EOT
        Node pools of the TPU slice provisioner stand in clusters that this plan drops, and nobody would delete them:
        ${join("; ", [for cluster, pools in local.stranded : "${cluster}: ${join(", ", pools)}" if length(pools) > 0])}.
        End or suspend the JobSets that use them, or release their slices, until they are gone. Then plan again.
      EOT
    }
  }

  depends_on = [google_project_service.api]
}

# A database that was there before may have the data of others: it is taken over, left when the rest is destroyed, and
# can be taken over again.
import {
  for_each = toset(var.database == "existing" ? ["(default)"] : [])
  to       = google_firestore_database.records
  id       = "projects/${var.project}/databases/${each.key}"
}

locals {
  records_go = var.destroy == "yes" && var.database == "new"
  # With the database goes what it has: to delete its indexes before, one after another, would take an hour.
  left_to_database = local.records_go ? "ABANDON" : "DELETE"
  # Of a request, which is repeated while Firestore is busy with another; and of a deletion, which is waited for.
  firestore_patience = "90m"
}

# From ../firestore.indexes.json; a test compares that file with the queries. Firestore makes them one after another, each in
# minutes: nothing here waits for that. The build's step `indexes` does.
resource "google_firestore_index" "index" {
  for_each = {
    for index in local.firestore.indexes :
    join("/", concat([index.collectionGroup], index.fields[*].fieldPath)) => index
  }

  database        = google_firestore_database.records.name
  collection      = each.value.collectionGroup
  query_scope     = each.value.queryScope
  skip_wait       = true
  deletion_policy = local.left_to_database

  dynamic "fields" {
    for_each = each.value.fields

    content {
      field_path = fields.value.fieldPath
      order      = fields.value.order
    }
  }

  timeouts {
    create = local.firestore_patience
    delete = local.firestore_patience
  }
}

resource "google_firestore_field" "field" {
  for_each = {
    for field in local.firestore.fieldOverrides :
    "${field.collectionGroup}/${field.fieldPath}" => field if field.fieldPath != "*"
  }

  database        = google_firestore_database.records.name
  collection      = each.value.collectionGroup
  field           = each.value.fieldPath
  skip_wait       = true
  deletion_policy = local.left_to_database

  # Empty: this field is not indexed.
  index_config {
    dynamic "indexes" {
      for_each = each.value.indexes

      content {
        order       = indexes.value.order
        query_scope = indexes.value.queryScope
      }
    }
  }

  dynamic "ttl_config" {
    for_each = lookup(each.value, "ttl", false) ? [true] : []

    content {}
  }

  timeouts {
    create = local.firestore_patience
    update = local.firestore_patience
    delete = local.firestore_patience
  }
}

# No field but those above is indexed. It comes after them, so that none of them is ever without its index.
resource "google_firestore_field" "rest" {
  for_each = toset([for field in local.firestore.fieldOverrides : field.collectionGroup if field.fieldPath == "*"])

  database        = google_firestore_database.records.name
  collection      = each.key
  field           = "*"
  skip_wait       = true
  deletion_policy = local.left_to_database

  index_config {}

  timeouts {
    create = local.firestore_patience
    update = local.firestore_patience
    delete = local.firestore_patience
  }

  depends_on = [google_firestore_field.field]
}
