"""What VMs ask of their metadata server."""
