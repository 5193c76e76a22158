"""What people are told of slices and workloads: why one waits, and what slices did over time. Pure."""
