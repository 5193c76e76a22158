"""What acts on the objects in process: level-triggered controllers as those of `tpu_standins.clients`."""
