"""The mirror: objects in the cluster that show what is on record of its slices and workloads. Nobody acts upon them."""
