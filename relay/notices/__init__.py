"""What the relay tells people of by itself: a second provisioner in the cluster, and pods that get no slice."""
