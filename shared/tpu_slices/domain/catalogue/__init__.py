"""The TPU catalogue and topologies. Pure."""
