"""The kubelets of the local nodes: pods start, run and end, and nodes keep their Leases, without any container."""
