"""What `slices doctor` finds of parts that are no way of messages."""
