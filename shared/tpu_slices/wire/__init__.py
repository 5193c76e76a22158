"""The only place where bytes become domain values, and back; every message and document carries its version."""
