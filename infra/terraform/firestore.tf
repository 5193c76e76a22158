# The functions use the database "(default)". If the project has it already, import it:
#   terraform import google_firestore_database.records "(default)"

resource "google_firestore_database" "records" {
  name                              = "(default)"
  location_id                       = var.firestore_location
  type                              = "FIRESTORE_NATIVE"
  delete_protection_state           = "DELETE_PROTECTION_ENABLED"
  point_in_time_recovery_enablement = "POINT_IN_TIME_RECOVERY_ENABLED"
  deletion_policy                   = "ABANDON"

  depends_on = [google_project_service.api]
}

# From ../firestore.indexes.json; a test compares that file with the queries.
resource "google_firestore_index" "index" {
  for_each = {
    for index in local.firestore.indexes :
    join("/", concat([index.collectionGroup], index.fields[*].fieldPath)) => index
  }

  database    = google_firestore_database.records.name
  collection  = each.value.collectionGroup
  query_scope = each.value.queryScope

  dynamic "fields" {
    for_each = each.value.fields

    content {
      field_path = fields.value.fieldPath
      order      = fields.value.order
    }
  }
}

resource "google_firestore_field" "field" {
  for_each = {
    for field in local.firestore.fieldOverrides :
    "${field.collectionGroup}/${field.fieldPath}" => field
  }

  database   = google_firestore_database.records.name
  collection = each.value.collectionGroup
  field      = each.value.fieldPath

  # Empty: this field is not indexed.
  index_config {}

  dynamic "ttl_config" {
    for_each = lookup(each.value, "ttl", false) ? [true] : []

    content {}
  }
}
