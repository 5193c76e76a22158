"""The only place where bytes are decoded to domain values and encoded; every message and document has a version."""
