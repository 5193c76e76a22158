"""What commands read and do inside a cluster, by kubectl and with its user's rights alone."""
