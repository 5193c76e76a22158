"""TPUNodeGroups in the cluster: held by a finalizer, their status written, and their pods evicted in the end."""
