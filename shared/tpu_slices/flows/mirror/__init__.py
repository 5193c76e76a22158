"""The mirror in the cluster: what it is to show, told as records change, and all of it once it differs from them."""
