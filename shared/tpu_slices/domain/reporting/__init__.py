"""Reports on slices and workloads: why one waits, and what slices did over time. Pure."""
