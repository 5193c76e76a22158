"""The objects of the cluster: which kinds there are, their rules, and how they change."""
