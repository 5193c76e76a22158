"""What acts on the objects in process: level-triggered controllers as those of `infra.local.clients`."""
